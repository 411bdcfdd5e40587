"""Looks at the test topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.benchmark.benchmark import Benchmark
from ragbench.commands import cli
from ragbench.evidence.arms import Arms
from ragbench.experiment.run import run
from ragbench.results import ledger, verdicts
from ragbench.results.measurements import Measurements


def test_looks_are_counted_once_for_each_benchmark(tmp_path: Path) -> None:
    assert ledger.look(tmp_path, "a" * 64, "one", "run", ["base"]) == 1
    assert ledger.look(tmp_path, "a" * 64, "two", "run", ["base"]) == 2
    assert ledger.look(tmp_path, "a" * 64, "one", "run", ["base"]) == 1  # the same again
    assert ledger.look(tmp_path, "a" * 64, "one", "compare", ["base"]) == 3
    assert ledger.look(tmp_path, "b" * 64, "one", "run", ["base"]) == 1
    assert [each["command"] for each in ledger.looks(tmp_path, "a" * 64)] == ["run", "run", "compare"]


def test_sentences() -> None:
    assert ledger.sentence(0, "x") == ""
    assert ledger.sentence(1, "x") == "look 1 at the test topics of 'x'"
    # The second look that judges: .05 / 6 decides, and .05 / 3 is left.
    assert ledger.sentence(4, "x", turn=2) == (
        "look 4 at the test topics of 'x', number 2 that judges: p <= 0.0083 decides, 0.017 is left for later looks"
    )


def test_prices_of_looks_that_judge_arms_add_up_to_the_whole(tmp_path: Path) -> None:
    assert [ledger.share(turn) for turn in (0, 1, 2, 3)] == [1, 1 / 2, 1 / 6, 1 / 12]
    for turn in (1, 2, 10):
        assert sum(map(ledger.share, range(1, turn + 1))) + ledger.left(turn) == pytest.approx(1)
    turns = []
    for key, command, arms in (
        ("a", "run", ["base"]),  # one arm is not judged
        ("b", "run", ["base", "x"]),
        ("c", "gate", ["base", "x"]),  # adopts nothing
        ("d", "compare", ["base", "y"]),
        ("b", "run", ["base", "x"]),  # the same again
        ("e", "learn-ranker", ["base"]),
        ("f", "fit order", ["base"]),
        ("g", "fit adapter", ["base"]),
    ):
        ledger.look(tmp_path, "a" * 64, key, command, arms)
        turns.append(ledger.turn(tmp_path, "a" * 64, key, command))
    assert turns == [0, 1, 0, 2, 1, 3, 4, 5]


def test_another_results_folder_does_not_start_afresh(settings_of, benchmark_small: Benchmark, tmp_path: Path) -> None:
    def judged(place: str, *words: str) -> Measurements:
        arms = [
            settings_of(tmp_path / place, "latency.enabled=false", "split=test", f"name={name}", *words, *more)
            for name, more in (("base", ()), ("words", ("dense=null",)))
        ]
        return run(arms, benchmark_small, say=lambda sentence: None)

    first, second = judged("one"), judged("two", "lexical.k1=0.7")
    assert [each.record["turn"] for each in (first, second)] == [1, 2]
    assert [each.record["look"]["share"] for each in (first, second)] == [1 / 2, pytest.approx(1 / 6)]
    for found, price in ((first, "p <= 0.025 decides and 0.025 is left"), (second, "p <= 0.0083 decides and 0.017")):
        assert price in verdicts.read(found)["reason"][0]
    assert judged("three").record["turn"] == 1  # the same look again, elsewhere
    assert Arms.of(second).policy.confidence == pytest.approx(1 - 0.05 / 6)


def test_runs_enter_what_they_look_at(settings_of, benchmark_small: Benchmark, tmp_path: Path) -> None:
    def measured(*words: str) -> int:
        settings = settings_of(tmp_path, "latency.enabled=false", *words)
        return run([settings], benchmark_small, say=lambda sentence: None).looks

    assert measured("split=train") == 0
    assert measured("split=test") == 1
    assert measured("split=all", "dense=null") == 2
    assert measured("split=test") == 1
    assert len(ledger.looks(locations.ledger(), benchmark_small.digest)) == 2


def test_reading_a_run_again_is_no_look(settings_of, benchmark_small: Benchmark, tmp_path: Path, monkeypatch) -> None:
    """`run`, `advise`, `diagnose`, `compare`, `run` of the same arms are one comparison: one look."""
    monkeypatch.chdir(tmp_path)
    arms = [
        settings_of(tmp_path / "results", "latency.enabled=false", "split=test", f"name={name}", *words)
        for name, words in (("base", ()), ("words", ("dense=null",)))
    ]
    first = run(arms, benchmark_small, say=lambda sentence: None)
    for command in ("advise", "compare"):
        assert cli.main([command, str(first.folder)]) == 0
    again = run(arms, benchmark_small, say=lambda sentence: None)
    assert [each.record["looks"] for each in (first, again)] == [1, 1]
    ledger.look(locations.ledger(), benchmark_small.digest, "old", "diagnose", ["base"])  # as earlier versions wrote
    assert len(ledger.looks(locations.ledger(), benchmark_small.digest)) == 1
