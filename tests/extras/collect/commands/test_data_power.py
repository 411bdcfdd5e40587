"""`ragbench data power`: the effect that a run can detect, and what it says where there is none."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from ragbench.commands.cli import main


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        ({"one": [0.1, 0.5, 0.9]}, "a run of one arm has no differences"),
        ({"one": [0.1, 0.5, 0.9], "same": [0.1, 0.5, 0.9]}, "no query differs between the two arms"),
        ({"one": [0.1, 0.5, 0.9], "other": [0.2, 0.5, 0.7]}, "half of an MDE needs four times as many queries"),
    ],
)
def test_data_power_says_what_the_table_means(
    arms: dict[str, list[float]], said: str, write_results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "power", str(write_results(tmp_path / "run", arms))]) == 0
    printed = capsys.readouterr().out
    assert said in printed
    assert ("no query differs" in printed) == ("same" in arms) and ("MDE in" in printed) == (len(arms) == 2)


def test_data_power_counts_queries_for_the_effect_found(
    write_results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {"one": [0.1, 0.5, 0.9, 0.3], "other": [0.2, 0.5, 0.7, 0.6]}
    assert main(["data", "power", str(write_results(tmp_path / "run", values)), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["arm"], row["other"]) == ("other", "one")  # as everywhere: a later arm against the first
    effect = 0.05  # the mean of 0.1, 0, -0.2 and 0.3
    assert row["queries for the effect"] == math.ceil(4 * (row["detectable nDCG@10"] / effect) ** 2)
