"""The record of comparisons: the first on queries may adopt, later ones are exploratory until one confirms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.benchmark.benchmark import Benchmark
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.evidence.arms import Arms
from ragbench.experiment.run import run
from ragbench.results import comparisons, measurements, store
from ragbench.results.measurements import Measurements
from tests.notes import write_vault


def test_comparisons_are_counted_by_the_queries_that_they_share() -> None:
    def number(queries: list[str], compared: str, collection: str = "notes") -> int:
        return comparisons.record(collection, queries, compared, "run", ["base", "x"])

    assert number(["q1", "q2"], "a") == 1
    assert number(["q2", "q3"], "a") == 2  # q2 was used
    assert number(["q4"], "b") == 1  # none was
    assert number(["q2", "q1"], "a") == 1  # the same again
    assert number(["q1", "q2"], "b") == 3
    assert number(["q1", "q2"], "a", "other notes") == 1
    assert comparisons.used("notes") == {"q1", "q2", "q3", "q4"}


def test_comparisons_unreadable_entry_is_kept_and_uses_no_query() -> None:
    comparisons.record("notes", ["q1"], "a", "run", ["base", "x"])
    (path,) = locations.ledger().rglob("*.json")
    path.write_text("{")
    assert [item["command"] for item in comparisons.recorded("notes")] == ["unreadable"]
    assert comparisons.used("notes") == frozenset()


@pytest.mark.parametrize(
    ("number", "ordinal"), [(2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (21, "21st")]
)
def test_comparisons_labels(number: int, ordinal: str) -> None:
    assert comparisons.describe(number) == f"exploratory: {ordinal} comparison on these queries"
    assert comparisons.describe(0) == comparisons.describe(1) == ""


@pytest.fixture
def compared(settings_of, benchmark_small: Benchmark, tmp_path: Path):
    """A function that compares two arms: the folder of results, the names of the arms, words of the second arm."""

    def compare(folder: str, second: str = "dense=null", names=("base", "second"), swap: bool = False) -> Measurements:
        words = [(), (second,)]
        arms = [
            settings_of(tmp_path / folder, "latency.enabled=false", "split=test", f"name={name}", *more)
            for name, more in zip(names, words[::-1] if swap else words, strict=True)
        ]
        return run(arms, benchmark_small)

    return compare


def test_comparisons_names_folders_and_order_do_not_make_a_new_comparison(compared) -> None:
    first = compared("one")
    assert first.comparison == 1 and first.exploratory == ""
    assert compared("two", names=("old", "new"), swap=True).comparison == 1
    later = compared("three", "lexical.k1=0.7")
    assert later.exploratory == "exploratory: 2nd comparison on these queries"
    assert Arms.of(first).policy.statistics == Arms.of(later).policy.statistics  # its error rate is not reduced
    assert [Arms.of(item).policy.exploratory for item in (first, later)] == [False, True]


def test_comparisons_only_the_first_comparison_adopts(write_results, tmp_path: Path) -> None:
    folder = write_results(
        tmp_path / "runs" / "run", {"base": [0.2, 0.4] * 40, "good": [0.5, 0.6] * 40}, {"base": 20.0, "good": 21.0}
    )
    first = measurements.load(folder)
    later = replace(first, record={**first.record, "comparison": 2})
    (adopted,), (exploratory,) = (Arms.of(item).against() for item in (first, later))
    assert (adopted.verdict.outcome, exploratory.verdict.outcome) == ("adopt", "confirm")
    assert adopted.levels == exploratory.levels
    assert exploratory.verdict.reason.endswith("confirm it on queries that no earlier comparison used.")


def test_comparisons_confirm_compares_on_queries_not_used_before(workplace: Path, tmp_path: Path, capsys) -> None:
    notes = sorted(write_vault(tmp_path / "notes", 24).rglob("*.md"))
    rows = [f'"{path.read_text().split()[1]} {path.stem}",{path.relative_to(tmp_path / "notes")}' for path in notes]
    (tmp_path / "queries.csv").write_text("\n".join(["text,relevant", *rows]))
    words = [
        *(
            "exp=lexical_only",
            "data=vault",
            f"data.corpus={tmp_path / 'notes'}",
            f"data.queries={tmp_path / 'queries.csv'}",
        ),
        *("split=all", f"paths.results={tmp_path}", f"paths.index={workplace / 'index'}", "statistics.draws=500"),
        *("latency.enabled=false", "tracking.enabled=false"),
    ]
    settings = [composition.compose([*words, f"name={name}", *more]) for name, more in (("base", []), ("x", ["p8=on"]))]
    benchmark = load(settings[0].config)
    queries = [topic.qid for topic in benchmark.topics]
    few = run(settings, benchmark, only=queries[:4])
    assert len(few.topics) == 4
    assert cli.main(["run", "--confirm", f"{few.folder.name}/x", f"paths.results={tmp_path}"]) == 0
    confirmed = measurements.load(store.latest(tmp_path))
    assert set(confirmed.topics["qid"]) == set(queries[4:])
    assert (few.comparison, confirmed.comparison) == (1, 1)
    capsys.readouterr()
    assert cli.main(["run", "--confirm", f"{few.folder.name}/x", f"paths.results={tmp_path}"]) == 2
    assert f"that no comparison used, and '{benchmark.name}' has 0: add queries" in capsys.readouterr().err


def test_comparisons_reading_a_run_is_no_comparison(compared, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = compared("results")
    for command in ("advise", "compare"):
        assert cli.main([command, str(first.folder)]) == 0
    assert len(comparisons.recorded(first.record["benchmark"]["name"])) == 1
    assert first.verdicts["factor"].tolist() == ["second"]


def test_comparisons_one_arm_is_no_comparison(settings_of, benchmark_small: Benchmark, tmp_path: Path) -> None:
    alone = run([settings_of(tmp_path, "latency.enabled=false")], benchmark_small)
    assert alone.comparison == 0
    assert comparisons.used(benchmark_small.name) == frozenset()
