"""Check that the data that a command reads are those that a finished run measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragbench.base.types import ResultsError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.benchmark import load
from ragbench.results.measurements import Measurements

_OF_DATA = ("data=", "data.", "topics=", "topics.")


def benchmark_of(results: Measurements, *, judged_since: bool = False) -> Benchmark:
    """The benchmark that a run recorded, read again; ResultsError when it has changed since.

    With `judged_since` judgments may have changed, documents and topics may not.
    """
    benchmark = load(results.shared_config)
    require(results, benchmark, judged_since=judged_since)
    return benchmark


def require(results: Measurements, benchmark: Benchmark, *, judged_since: bool = False) -> None:
    """Raise ResultsError unless the benchmark is the one a run measured."""
    recorded = results.record["benchmark"]
    if recorded["digest"] == benchmark.digest:
        return
    if recorded["name"] != benchmark.name:
        raise ResultsError(
            f"{results.folder} measured '{recorded['name']}' and not '{benchmark.name}': omit data=, or name a "
            f"run over '{benchmark.name}'"
        )
    parts = (("documents", benchmark.collection, "collection"), ("topics", benchmark.questions, "questions"))
    changed = next((part for part, current, key in parts if recorded.get(key) != current), "judgments")
    if changed != "judgments" or not judged_since:
        raise ResultsError(
            f"the {changed} of '{benchmark.name}' have changed since {results.folder} was measured: run it again"
        )


def refuse_other_data(results: Measurements, config: Mapping[str, Any], overrides: Sequence[str]) -> None:
    """Raise ResultsError when words of a command name other data than the run measured."""
    if not names_data(overrides):
        return
    recorded = results.shared_config
    if any(_without_judgments(config[key]) != _without_judgments(recorded[key]) for key in ("data", "topics")):
        raise ResultsError(
            f"{results.folder} measured '{results.record['benchmark']['name']}', which these settings do not read: "
            "leave data= and topics= out, or name a run over those data"
        )


def names_data(overrides: Sequence[str]) -> bool:
    """Whether words of a command name data."""
    return any(override.lstrip("+").startswith(_OF_DATA) for override in overrides)


def _without_judgments(node: Any) -> Any:
    """The settings of data without those of judgments, to which some may be added, and of a preliminary verdict."""
    if not isinstance(node, Mapping):
        return node
    return {key: value for key, value in node.items() if key not in ("qrels", "sample")}


def require_same(first: Measurements, second: Measurements) -> None:
    """Raise ResultsError unless two runs measured the same benchmark."""
    recorded, current = (run.record["benchmark"] for run in (first, second))
    if recorded["digest"] != current["digest"]:
        raise ResultsError(
            f"{first.folder} measured '{recorded['name']}' ({recorded['digest'][:12]}) and {second.folder} "
            f"'{current['name']}' ({current['digest'][:12]}): compare runs over the same documents, "
            "queries and judgments"
        )
