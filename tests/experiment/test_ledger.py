"""Looks at the test topics."""

from __future__ import annotations

from pathlib import Path

from ragbench.benchmark.benchmark import Benchmark
from ragbench.experiment import ledger
from ragbench.experiment.run import run


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
    assert "more likely to pass as a gain" in ledger.sentence(2, "x")


def test_runs_enter_what_they_look_at(settings_of, benchmark_small: Benchmark, tmp_path: Path) -> None:
    def measured(*words: str) -> int:
        settings = settings_of(tmp_path, "latency.enabled=false", *words)
        return run([settings], benchmark_small, say=lambda sentence: None).looks

    assert measured("split=train") == 0
    assert measured("split=test") == 1
    assert measured("split=all", "dense=null") == 2
    assert measured("split=test") == 1
    assert len(ledger.looks(tmp_path, benchmark_small.digest)) == 2
