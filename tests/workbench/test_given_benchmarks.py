"""Benchmarks that a script hands over: measured with the default timing, as those that words name are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from ragbench import Benchmark, Experiment, Own, Results, load_benchmark
from ragbench.base.types import QueryState
from ragbench.index.index import Index

DATA = Path(__file__).parents[1] / "data"
COLD = {"cold ready", "cold first answer"}


def _cold(results: Results, arm: str) -> set[str]:
    frame = results.latency[results.latency["arm"] == arm]
    return set(frame["stage"][frame["stage"].str.startswith("cold ")])


@dataclass(frozen=True)
class OnlyHere:
    """A stage that fails in other processes."""

    process: int

    needs: ClassVar[frozenset[str]] = frozenset()
    requires: ClassVar[frozenset[str]] = frozenset({"fused"})
    provides: ClassVar[frozenset[str]] = frozenset()
    forbids: ClassVar[Mapping[str, str]] = {}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        if os.getpid() != self.process:
            raise ZeroDivisionError("not here")
        return list(states)

    def describe(self) -> str:
        return "do nothing"


@pytest.fixture
def around(tmp_path: Path) -> list[str]:
    return ["exp=lexical_only", f"paths.results={tmp_path}", "tracking.enabled=false"]


@pytest.fixture
def loaded(request: pytest.FixtureRequest) -> Benchmark:
    if request.param == "vault":
        folder = DATA / "german"
        return load_benchmark("vault", corpus=folder / "vault", queries=folder / "queries.csv")
    if request.param == "beir":
        return load_benchmark("beir", folder=DATA / "tea" / "beir")
    small: Benchmark = request.getfixturevalue("benchmark_small")
    return small


@pytest.mark.parametrize("loaded", ["vault", "beir", "memory"], indirect=True)
def test_a_given_benchmark_is_measured_with_default_timing(loaded: Benchmark, around: list[str]) -> None:
    results = Experiment.single(*around, "p10=on", benchmark=loaded).run()
    (arm,) = results.arms
    assert _cold(results, arm) == COLD
    assert results.peak_memory_mb[arm] > 50
    assert results.record["benchmark"]["digest"] == loaded.digest


def test_a_cold_start_that_fails_costs_the_cold_start_only(
    benchmark_small: Benchmark, around: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    arms = {"plain": around, "here": [*around, Own("here", OnlyHere(os.getpid()), before="cut")]}
    results = Experiment.arms(arms, benchmark_small).run()
    assert _cold(results, "plain") == COLD
    assert _cold(results, "here") == set()
    assert set(results.latency["arm"][results.latency["stage"] == "total"]) == {"plain", "here"}
    assert len(results.verdicts) == 1
    assert (
        "warning: the cold start of 'here' was not measured (ZeroDivisionError: not here); "
        "all other results are complete" in " ".join(capfd.readouterr().err.split())
    )
