"""May the candidate replace the baseline? Two finished runs: lower quality beyond chance and higher latency say no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from ragbench.bounds import Checked, Weight
from ragbench.comparison.statistics import align, compare
from ragbench.errors import ConfigError
from ragbench.evaluation.measures import PRIMARY
from ragbench.export.measured import MeasuredArm, latency_cost
from ragbench.export.verify import Check

LATENCY_TOLERANCE = 0.2
"""By how much the candidate's p95 may lie above the baseline's, as a share of it."""


@dataclass(frozen=True)
class Limits(Checked):
    """What the gate lets through.

    `drop`: how much lower `measure` may be, at least 0. `latency_tolerance`: how much higher p95 may be, as a share.
    `confidence`: how sure a loss must be to count, between 0 and 1.
    """

    measure: str = PRIMARY
    drop: Weight = 0.0
    latency_tolerance: Weight = LATENCY_TOLERANCE
    confidence: Annotated[float, Interval(gt=0, lt=1)] = 0.95


def gate(baseline: MeasuredArm, candidate: MeasuredArm, limits: Limits | None = None) -> list[Check]:
    """The checks of a candidate against a baseline; BenchmarkError when they did not answer the same queries."""
    limits = limits or Limits()
    checks = [_quality(baseline, candidate, limits), _latency(baseline, candidate, limits)]
    return [_benchmark(baseline, candidate), *checks]


def _benchmark(baseline: MeasuredArm, candidate: MeasuredArm) -> Check:
    first, second = (each.results.record["benchmark"]["digest"] for each in (baseline, candidate))
    if first == second:
        return Check("benchmark", "passes", "both runs saw the same documents, queries and judgments")
    return Check("benchmark", "not checked", "documents, queries or judgments changed between the runs")


def _quality(baseline: MeasuredArm, candidate: MeasuredArm, limits: Limits) -> Check:
    series = {}
    for role, each in (("baseline", baseline), ("candidate", candidate)):
        values = each.results.values(each.name, limits.measure).dropna()
        if not len(values):
            known = ", ".join(sorted(set(each.results.per_query["measure"])))
            raise ConfigError(f"'{limits.measure}' was not measured by the {role}; measures: {known}")
        series[f"{role} {each.name}"] = {str(qid): float(value) for qid, value in values.items()}
    before, after = align(series)[1].values()
    seed = int(baseline.settings.config["seed"])
    found = compare(after, before, seed=seed, confidence=limits.confidence)
    said = (
        f"{limits.measure} {found.mean_baseline:.4f} -> {found.mean_candidate:.4f}: {found.difference:+.4f} "
        f"[{found.ci_low:+.4f}, {found.ci_high:+.4f}], p = {found.p_value:.2g}, {found.n} queries"
    )
    if found.ci_high < -limits.drop and found.p_value <= 1 - limits.confidence:
        return Check("quality", "fails", f"{said}; it is lower by more than {limits.drop:g}")
    return Check("quality", "passes", f"{said}; a drop of {found.mde:.3f} would be noticed four times in five")


def _latency(baseline: MeasuredArm, candidate: MeasuredArm, limits: Limits) -> Check:
    before, cost = baseline.latency, latency_cost(candidate.latency, baseline.latency)
    if before is None or cost is None:
        return Check("latency", "not checked", "one of the runs did not measure time")
    allowed = before["p95"] * limits.latency_tolerance
    said = f"p95 {before['p95']:.1f} ms, {cost.text}, at most +{allowed:.1f} ms"
    return Check("latency", "fails" if cost.bounds[0] > allowed else "passes", said)
