"""A small part of the campaign; `make faults` runs the whole of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.bad_inputs import cases, harm
from tests.faults.campaign import SEED, Campaign
from tests.faults.company import Company
from tests.faults.doors import Doors
from tests.faults.sameness import differences, measure


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return Campaign(tmp_path_factory.mktemp("faults"))


@pytest.mark.slow
def test_flipped_bits_are_noticed(campaign: Campaign) -> None:
    campaign.flip(100)
    assert campaign.harms == []
    assert campaign.counts["flips noticed"] >= 90


@pytest.mark.slow
def test_bad_inputs_are_refused_in_one_sentence(tmp_path: Path) -> None:
    known = cases()
    assert len(known) >= 600
    assert len({case.name for case in known}) == len(known)
    # Quick ones: no documents are read, nothing is measured.
    quick = [case for case in known if case.name.startswith(("keys", "values", "slips", "data"))]
    chosen = random.Random(SEED).sample(quick, 40)
    assert [(case.name, said) for n, case in enumerate(chosen) if (said := harm(case, tmp_path / str(n)))] == []


@pytest.mark.slow
def test_bad_contents_are_refused_at_every_door(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(campaign.folder / "state"))
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    doors = Doors(campaign.folder / "doors", campaign.export(), campaign.words)
    try:
        doors.try_all(102)
    finally:
        doors.close()
    assert doors.harms == []
    assert doors.refused.total() > 30


@pytest.mark.slow
def test_killed_commands_go_on(campaign: Campaign) -> None:
    campaign.kill(2, ("run", "merge"))
    assert campaign.harms == []


@pytest.mark.slow
def test_a_full_disk_is_one_sentence(campaign: Campaign) -> None:
    campaign.fill(1)
    assert campaign.harms == []


@pytest.mark.slow
def test_a_killed_refresh_leaves_an_answer(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(campaign.folder / "state"))
    company = Company(campaign.folder / "company", campaign.export())
    company.kill(1)
    assert company.harms == []


@pytest.mark.slow
def test_seeds_threads_and_order_of_topics_change_no_byte(tmp_path: Path) -> None:
    found = {each: measure(each, tmp_path / each[0]) for each in (("0", "1", "forward"), ("77", "2", "backward"))}
    assert list(differences(found)) == []
    assert len(next(iter(found.values()))) == 8
