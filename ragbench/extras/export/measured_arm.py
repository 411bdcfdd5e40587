"""The arm to export: its configuration, its measurements, and whether its gain is established."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from ragbench.base import files
from ragbench.base.types import ConfigError, Query
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import project
from ragbench.config.settings import Settings
from ragbench.evidence.arms import Arms
from ragbench.results import measurements

_Gain = Literal["adopt", "confirm", "equivalent", "inconclusive", "reject", "uncompared"]
_LACKING = {"open": "not significantly better than", "equivalent": "equivalent to", "worse": "significantly worse than"}


@dataclass(frozen=True)
class MeasuredArm:
    """An arm of a finished run with the configuration it was measured with, and its benchmark where one is at hand."""

    name: str
    results: measurements.Measurements
    settings: Settings
    open_benchmark: Benchmark | None = None

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark of the run, read again unless it is at hand. ResultsError when it has changed since."""
        if self.open_benchmark is None:
            return measurements.benchmark_of(self.results, judged_since=True)
        measurements.require_benchmark(self.results, self.open_benchmark, judged_since=True)
        return self.open_benchmark

    @property
    def queries(self) -> list[Query]:
        """The queries that were measured."""
        return [topic.query() for topic in self.benchmark.select(str(self.results.record["split"]))]

    @property
    def folder(self) -> Path:
        """The arm's folder inside the run's."""
        return self.results.arm_path(self.name)

    @property
    def quality(self) -> dict[str, float]:
        """The mean of every measure over documents."""
        frame = self.results.per_query
        chosen = frame[(frame["arm"] == self.name) & (frame["level"] == "document")]
        means = chosen.groupby("measure", observed=True)["value"].mean()
        return {str(name): round(float(value), 6) for name, value in means.items()}

    @property
    def latency(self) -> dict[str, float] | None:
        """Percentiles of a whole query in milliseconds, with the intervals of p50 and p95; None when not measured."""
        frame = self.results.latency
        rows = frame[(frame["arm"] == self.name) & (frame["stage"] == "total")]
        if not len(rows):
            return None
        values = {name: float(rows.iloc[0][name]) for name in ("p50", "p95", "p99", "p95_low", "p95_high")}
        return {name: round(ms, 3) for name, ms in values.items() if ms == ms}  # few queries have no interval


@dataclass(frozen=True)
class Evidence:
    """The outcome of an arm against its baseline, in one word and in one sentence.

    `reason`: why it is not adopted, in a few words; `latency_unknown`: only its latency is unknown. `latency_off`: why
    quality alone decided, if it did. `caution`: a sentence for an export about an unproven gain.
    """

    gain: _Gain
    sentence: str
    baseline: str | None
    reason: str = ""
    latency_unknown: bool = False
    latency_off: str = ""
    caution: str | None = None

    @property
    def needs_force(self) -> bool:
        """Whether the measurement does not support an export."""
        return self.gain not in ("adopt", "uncompared")


def find(folder: Path, arm: str | None = None, like: str | None = None) -> MeasuredArm:
    """The arm of a finished run, as `measurements.find_arm` names it."""
    results, name = measurements.find_arm(folder, arm, like)
    overrides = tuple(results.record.get("overrides", {}).get(name, ()))
    return MeasuredArm(name, results, replace(results.settings(name), overrides=overrides))


def evidence(measured: MeasuredArm, baseline: str | None = None) -> Evidence:
    """The evidence for the arm against another arm of the run, the first one by default.

    The verdict is the one in the run's table: judged together with all arms that are compared with that baseline.
    """
    arms = measured.results.arms
    base = baseline or arms[0]
    if base not in arms:
        raise ConfigError(f"--baseline {base} is not an arm of {measured.results.folder}; arms: {', '.join(arms)}")
    if len(arms) == 1:
        return Evidence("uncompared", "It is the only configuration of its run, so no gain is claimed.", None)
    if base == measured.name:
        return Evidence("uncompared", "It is the baseline of its run, so no gain is claimed.", None)
    judged = Arms.of(measured.results).against(base)
    verdict = next(row.verdict for row in judged if row.contrast.factors == (measured.name,))
    sentence = f"Compared with {base} on {_topics(measured.results)}. {verdict.reason}"
    reason = verdict.cost.text if verdict.quality == "better" else f"{_LACKING[verdict.quality]} {base}"
    latency_unknown = verdict.quality == "better" and verdict.cost.axis == "open"
    latency_off = verdict.cost.text if verdict.cost.axis == "off" else ""
    return Evidence(verdict.outcome, sentence, base, reason, latency_unknown, latency_off)


def _topics(results: measurements.Measurements) -> str:
    split = str(results.record["split"])
    return "all queries" if split == "all" else f"the {split} queries"


def require_gain(verdict: Evidence, force: bool, advice: measurements.Prediction | None = None) -> str | None:
    """A sentence for the export on what is not established, None if all is; ConfigError without a gain or `force`.

    `advice` replaces `force` if the arm's own topics leave the gain open and it is predicted to be better.
    """
    if not verdict.needs_force:
        return f"Adopted by quality alone: {verdict.latency_off}." if verdict.latency_off else None
    if force:
        if verdict.gain == "confirm":
            return "Exported with --force after an exploratory comparison: confirm it on unused queries."
        if verdict.latency_unknown:
            return f"Exported with --force: significantly better, latency unknown: {verdict.reason}."
        return f"Exported with --force, although the verdict is {verdict.gain} ({verdict.reason})."
    if verdict.latency_unknown:
        raise ConfigError(
            f"the arm is significantly better than {verdict.baseline}, but its latency is unknown "
            f"({verdict.reason}): run ragbench run --remeasure-latency @1, or add --force (force=True in Python)"
        )
    if verdict.gain == "confirm":
        raise ConfigError(
            f"this configuration is better than {verdict.baseline} in an exploratory comparison: confirm it on unused "
            "queries with ragbench run --confirm RUN/ARM, or add --force (force=True in Python)"
        )
    if advice is not None and verdict.gain == "inconclusive":
        if advice.suffices:
            return f"Exported with --accept-predicted, without a verdict ({verdict.reason}): {advice.sentence}."
        raise ConfigError(
            f"this configuration is {verdict.reason}, and no gain is predicted with probability {measurements.SURE:g} "
            f"({advice.sentence}): judge more queries, or add --force"
        )
    predicted = "--accept-predicted if other collections predict a gain, or " if verdict.gain == "inconclusive" else ""
    raise ConfigError(
        f"the verdict on this configuration is {verdict.gain} ({verdict.reason}): to export it anyway, add {predicted}"
        "--force (force=True in Python)"
    )


def pin(folder: Path) -> Path:
    """Keep the folder of a run or arm as what `ragbench gate` compares with; returns the project file.

    The line is replaced or added, everything else in the file stays; a file is created if the project has none.
    """
    project_file = project.find()
    file = project_file.file if project_file else Path.cwd() / project.FILE
    try:
        path = folder.resolve().relative_to(file.parent.resolve())
    except ValueError:
        path = folder.resolve()
    line = f"{project.GATE}: {json.dumps(str(path))}"
    old = file.read_text(encoding="utf-8") if project_file else ""
    lines = [line for line in old.splitlines() if not line.startswith(f"{project.GATE}:")]
    first = next((at for at, line in enumerate(lines) if line.startswith(f"{project.ARMS}:")), len(lines))
    files.write_text(file, "\n".join([*lines[:first], line, *lines[first:]]) + "\n")
    return file
