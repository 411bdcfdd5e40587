"""A small part of the campaign; `make faults` runs the whole of it."""

from __future__ import annotations

import pytest

from tests.faults.campaign import Campaign


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return Campaign(tmp_path_factory.mktemp("faults"))


def test_flipped_bits_are_noticed(campaign: Campaign) -> None:
    campaign.flip(100)
    assert campaign.harms == []
    assert campaign.counts["flips noticed"] >= 90


def test_killed_commands_go_on(campaign: Campaign) -> None:
    campaign.kill(2)
    assert campaign.harms == []


def test_a_full_disk_is_one_sentence(campaign: Campaign) -> None:
    campaign.fill(1)
    assert campaign.harms == []
