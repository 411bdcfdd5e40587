"""Readers of a finished run are bound to what it measured: its own documents, topics and judgments, or none."""

from __future__ import annotations

from ragbench.benchmark.benchmark import Benchmark
from ragbench.errors import ResultsError
from ragbench.experiment.results import Results
from ragbench.topics.load import load


def benchmark_of(results: Results, *, judged_since: bool = False) -> Benchmark:
    """The benchmark that a run recorded, read again; ResultsError when it is no longer what was measured.

    With `judged_since` judgments may have changed, documents and topics may not.
    """
    benchmark = load(results.config(results.arms[0]))
    require(results, benchmark, judged_since=judged_since)
    return benchmark


def require(results: Results, benchmark: Benchmark, *, judged_since: bool = False) -> None:
    """Raise ResultsError unless the benchmark is the one a run measured."""
    recorded = results.record["benchmark"]
    if recorded["digest"] == benchmark.digest:
        return
    if recorded["name"] != benchmark.name:
        raise ResultsError(
            f"{results.folder} measured '{recorded['name']}' and not '{benchmark.name}': leave data= out, or name a "
            f"run over '{benchmark.name}'"
        )
    parts = (("documents", benchmark.collection, "collection"), ("topics", benchmark.questions, "questions"))
    changed = next((what for what, now, key in parts if recorded.get(key) != now), "judgments")
    if changed != "judgments" or not judged_since:
        raise ResultsError(
            f"the {changed} of '{benchmark.name}' have changed since {results.folder} was measured: run it again"
        )


def require_same(first: Results, other: Results) -> None:
    """Raise ResultsError unless two runs measured the same benchmark."""
    before, after = (each.record["benchmark"] for each in (first, other))
    if before["digest"] != after["digest"]:
        raise ResultsError(
            f"{first.folder} measured '{before['name']}' ({before['digest'][:12]}) and {other.folder} "
            f"'{after['name']}' ({after['digest'][:12]}): compare runs over the same documents, topics and judgments"
        )
