"""The gate: whether an arm of a finished run may replace another; not if it is surely worse or slower than allowed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Interval

from ragbench.bounds import Checked, Weight
from ragbench.comparison.arms import Arms, JudgedContrast
from ragbench.comparison.policy import Policy
from ragbench.errors import ConfigError, ResultsError
from ragbench.evaluation.levels import DOCUMENT
from ragbench.export.measured_arm import MeasuredArm
from ragbench.export.verify import Check

BASELINE, CANDIDATE = "baseline", "candidate"


@dataclass(frozen=True)
class Limits(Checked):
    """Limits of the gate; those that are None follow from the policy of the baseline.

    `measure`: of documents. `drop`: a sure loss at a level that is still allowed. `latency_tolerance`: how much higher
    p95 may be, as a share of the baseline's. `confidence`: how sure a loss must be (0.5 to 1). `changed_data`: whether
    documents, queries or judgments may have changed between the runs.
    """

    measure: str | None = None
    drop: Weight | None = None
    latency_tolerance: Weight | None = None
    confidence: Annotated[float, Interval(gt=0.5, lt=1)] | None = None
    changed_data: bool = False


def gate(baseline: MeasuredArm, candidate: MeasuredArm, limits: Limits | None = None) -> list[Check]:
    """The checks of a candidate against a baseline; ResultsError when they did not answer the same queries."""
    limits = limits or Limits()
    same = _benchmark(baseline, candidate, limits)
    policy = _policy(baseline, limits)
    both = {
        role: Arms.of(each.results, policy).arms[each.name]
        for role, each in ((BASELINE, baseline), (CANDIDATE, candidate))
    }
    for role, arm in both.items():
        if DOCUMENT not in arm.levels:
            raise ConfigError(f"'{policy.measure}' was not measured by the {role}: name another with --measure")
    (judged,) = Arms(both, policy, Arms.of(candidate.results, policy).busy).against(BASELINE)
    return [same, _quality(judged, policy, limits), _latency(judged)]


def _policy(baseline: MeasuredArm, limits: Limits) -> Policy:
    policy = Policy.of(baseline.settings.config)
    if limits.measure is not None:
        policy = replace(policy, measure=limits.measure)
    if limits.confidence is not None:
        policy = replace(policy, statistics=replace(policy.statistics, confidence=limits.confidence))
    if limits.latency_tolerance is not None and baseline.latency is not None:
        allowed = baseline.latency["p95"] * limits.latency_tolerance
        policy = replace(policy, budget=replace(policy.budget, p95_ms=allowed, rerank_p95_ms=allowed))
    return policy


def _benchmark(baseline: MeasuredArm, candidate: MeasuredArm, limits: Limits) -> Check:
    first, second = (each.results.record["benchmark"]["digest"] for each in (baseline, candidate))
    if first == second:
        return Check("benchmark", "passes", "both runs used the same documents, queries and judgments")
    if not limits.changed_data:
        raise ResultsError(
            "documents, queries or judgments changed between the two runs: run the baseline again on the present ones, "
            "or add --changed-data to compare anyway"
        )
    return Check("benchmark", "not checked", "documents, queries or judgments changed between the runs")


def _quality(judged: JudgedContrast, policy: Policy, limits: Limits) -> Check:
    worse = judged.verdict.quality == "worse"
    if worse and limits.drop is not None:
        worse = any(level.worse and level.comparison.ci_high < -limits.drop for level in judged.levels.values())
    effect = policy.statistics.smallest_effect
    texts = "; ".join(level.text(effect) for level in judged.levels.values())
    return Check("quality", "fails" if worse else "passes", f"{judged.verdict.quality}: {texts}")


def _latency(judged: JudgedContrast) -> Check:
    cost = judged.cost
    if cost.added is None:
        return Check("latency", "not checked", "one of the runs did not measure time")
    return Check("latency", "fails" if cost.axis == "over" else "passes", f"{cost.axis}: {cost.text}")
