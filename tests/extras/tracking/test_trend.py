"""Lines over time: what breaks them, which drops are alarms, and runs as MLflow keeps them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ragbench.commands import cli
from ragbench.config import composition
from ragbench.extras import tracking
from ragbench.extras.tracking import trend_table
from ragbench.extras.tracking.store import FACTS
from ragbench.extras.tracking.trend import CONFIRMED, REFERENCE, Night, points, reference

QUERIES = 100
SAME = dict.fromkeys(FACTS, "same")
BASE = np.tile([0.3, 0.5, 0.7, 1.0], QUERIES // 4)


def night(at: int, values: np.ndarray = BASE, **facts: str) -> Night:
    of_query = {f"q{number:03}": float(value) for number, value in enumerate(values)}
    return Night(float(at), f"run {at}", of_query, SAME | facts)


def states(nights: list[Night]) -> list[str]:
    return [point.alarm for point in points(nights, draws=500)]


def test_trend_alarm_begins_with_the_third_low_run_and_lasts_until_one_is_as_good() -> None:
    lower = BASE - 0.06
    low = [night(at, lower) for at in (4, 5, 6, 7)]
    found = states([*(night(at) for at in range(4)), *low, night(8), night(9, lower)])
    assert found == ["", "", "", "", "", "", "begins", "lasts", "", ""]
    assert CONFIRMED == 3


def test_trend_has_no_alarm_for_one_low_run_or_a_gain() -> None:
    assert not any(states([night(0), night(1), night(2, BASE - 0.06), night(3), night(4, BASE - 0.06), night(5)]))
    assert not any(states([night(0), *(night(at, np.minimum(1, BASE + 0.1)) for at in range(1, 6))]))


def test_trend_adds_up_small_drops() -> None:
    """Each run loses .008: against the run before none would be found, against the first ones all of them are."""
    found = points([night(at, BASE - 0.008 * at) for at in range(12)], draws=500)
    assert found[-1].alarm == "lasts"
    assert found[-1].change.difference == pytest.approx(-0.008 * 11 + 0.008 * (REFERENCE - 1) / 2)


def test_trend_reference_leaves_the_newest_runs_out() -> None:
    values = np.arange(20.0)[:, np.newaxis]
    assert [float(reference(values, place)[0]) for place in (1, 3, 4, 6, 19)] == [0, 0, 0, 1, 3]


@pytest.mark.parametrize("fact", FACTS)
def test_trend_breaks_where_something_else_is_measured(fact: str) -> None:
    found = points([night(0), night(1), night(2, BASE - 0.3, **{fact: "other"}), night(3, BASE - 0.3)], draws=500)
    assert [point.line for point in found] == [1, 1, 2, 3]
    assert [point.broke for point in found] == ["", "", f"{fact} changed", f"{fact} changed"]
    assert found[2].change is None and not any(point.alarm for point in found)


def test_trend_says_documents_where_their_digest_covers_the_judgments_too() -> None:
    found = points(
        [night(0), night(1, documents="b", judgments="b"), night(2, BASE[:50], documents="b", judgments="b")]
    )
    assert [point.broke for point in found] == ["", "documents changed", "queries changed"]
    frame = trend_table.frame(found)
    assert frame["note"].tolist() == ["", "new line: documents changed", "new line: queries changed"]
    assert trend_table.sentence(found) == "line 3 has one run, so there is nothing to compare: queries changed"


@pytest.mark.filterwarnings("ignore")
def test_trend_reads_runs_from_the_store(write_results, reseal, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    words = [f"paths.results={tmp_path}"]
    assert cli.main(["track", "trend", *words]) == 2
    assert "does not exist: ragbench track --all" in capsys.readouterr().err
    target = tracking.target_of(composition.compose(words))
    for number, lost in enumerate((0.0, 0.06, 0.06, 0.06)):
        values = {"ours": list(BASE - lost), **({"other": list(BASE)} if number == 0 else {})}
        assert tracking.log(target, write_results(tmp_path / "runs" / f"{number}", values))
    assert cli.main(["track", "trend", *words]) == 2
    assert "has several arms: name one of other, ours with --arm" in capsys.readouterr().err
    assert cli.main(["track", "trend", "--arm", "ours", "--json", *words]) == 1
    written = capsys.readouterr()
    printed = json.loads(written.out)
    assert "artifacts" not in written.err  # a bar of MLflow for each run
    assert (printed["arm"], printed["alarm"]) == ("ours", True)
    assert [round(run["mean"], 3) for run in printed["runs"]] == [0.625, 0.565, 0.565, 0.565]
    assert [run["line"] for run in printed["runs"]] == [1, 1, 1, 1]
    assert cli.main(["track", "trend", "--arm", "other", *words]) == 0
    assert "line 1 has one run, so there is nothing to compare" in capsys.readouterr().out
