"""Adopt, reject or inconclusive: what a comparison means for the person who has to decide, in one sentence.

The order of the questions: is the idea within its latency budget (beyond it, no gain helps); are the judgments fair to
the arm that does worse (otherwise it may only be the less judged); is the difference in quality more than chance; and
in which direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ragbench.comparison.statistics import Comparison
from ragbench.errors import ConfigError

Outcome = Literal["adopt", "reject", "inconclusive"]

BUDGETS_MS = {"p6": 150.0}
"""Seed 000: re-ranking may add 150 ms to a query, any other change 50 ms."""
OTHER_BUDGET_MS = 50.0

UNJUDGED_LIMIT = 0.05
"""An arm that does worse and has so many more unjudged hits (Unjudged@10, a share of the first ten) has not lost yet.

Unjudged hits count as not relevant, so that judging them can only help the arm that returns them. An arm that returns
fewer hits has no fewer of its places judged: empty places are not unjudged.
"""


@dataclass(frozen=True)
class LatencyCost:
    """What the idea adds to the p95 of a query, in milliseconds (negative: it saves), with its interval if known."""

    p95_ms: float
    low_ms: float | None = None
    high_ms: float | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval; the point twice where none is known."""
        if self.low_ms is None or self.high_ms is None:
            return self.p95_ms, self.p95_ms
        return self.low_ms, self.high_ms

    @property
    def text(self) -> str:
        """As a person reads it: `+12 ms [+9, +16]`."""
        low, high = self.bounds
        return f"{self.p95_ms:+.0f} ms" + ("" if low == high else f" [{low:+.0f}, {high:+.0f}]")


@dataclass(frozen=True)
class Verdict:
    """The outcome and its reason, one sentence."""

    outcome: Outcome
    reason: str


def latency_budget_ms(factor: str, configured: float | None = None) -> float:
    """Milliseconds that a proposal may add to p95: `budget.p95_ms` where set, else the seeds' for this proposal."""
    if configured is None:
        return BUDGETS_MS.get(factor, OTHER_BUDGET_MS)
    if not configured >= 0:
        raise ConfigError(f"budget.p95_ms must be at least 0, got {configured:g}")
    return float(configured)


def judge(
    comparison: Comparison,
    *,
    p_holm: float,
    budget_ms: float,
    latency: LatencyCost | None = None,
    unjudged_difference: float | None = None,
    measure: str = "nDCG@10",
) -> Verdict:
    """The verdict on the candidate of `comparison`.

    `p_holm` is its p value after Holm's adjustment over the declared family; significance is at 1 - confidence.
    `latency` is None when it was not measured, and the reason then says so. `unjudged_difference` is the
    candidate's Unjudged@10 minus the baseline's, as a share (0.05 = 5 points), None when unknown: where the arm that
    does worse has too many more, nothing is decided. Where the latency interval reaches across the budget, a gain is
    inconclusive.
    """
    quality = f"{measure} {comparison.difference:+.3f} [{comparison.ci_low:+.3f}, {comparison.ci_high:+.3f}]"
    evidence = f"{quality}, {_p(p_holm)}, {comparison.n} queries"
    if latency is not None and latency.bounds[0] > budget_ms:
        return Verdict("reject", f"It adds {latency.text} to p95, above the budget of {budget_ms:.0f} ms ({evidence}).")
    if undervalues_the_worse(comparison.difference, unjudged_difference):
        return Verdict(
            "inconclusive",
            f"Unjudged@10 differs by {100 * (unjudged_difference or 0):+.1f} points, and the arm with more does worse, "
            f"so neither wins until their unjudged hits are pooled and judged ({evidence}).",
        )
    if p_holm > 1 - comparison.confidence:
        return Verdict("inconclusive", _undecided(comparison, quality, p_holm))
    if comparison.difference <= 0:
        return Verdict("reject", f"It lowers quality: {evidence}.")
    if latency is None:
        return Verdict("adopt", f"It raises quality: {evidence}; its latency was not measured.")
    if budget_ms == math.inf:
        return Verdict("adopt", f"It raises quality: {evidence}; {latency.text} on p95, for which no budget is set.")
    if latency.bounds[1] > budget_ms:
        return Verdict(
            "inconclusive",
            f"It raises quality ({evidence}), but whether its {latency.text} on p95 keeps within the budget of "
            f"{budget_ms:.0f} ms is not settled: time more queries.",
        )
    return Verdict("adopt", f"It raises quality: {evidence}; {latency.text} on p95 is within {budget_ms:.0f} ms.")


def undervalues_the_worse(difference: float, unjudged_difference: float | None) -> bool:
    """Whether the arm that does worse has over 5 points more unjudged hits; both are candidate minus baseline.

    False when the arms are equal or the judgments unknown.
    """
    if unjudged_difference is None or difference == 0:
        return False
    more = unjudged_difference if difference < 0 else -unjudged_difference
    # Exactly 5 points are allowed, also when subtraction leaves a rounding error above.
    return more > UNJUDGED_LIMIT + 1e-9


def _undecided(comparison: Comparison, quality: str, p_holm: float) -> str:
    if comparison.ties == comparison.n:
        return f"It changed no result that counts: the values are equal on all {comparison.n} queries."
    if comparison.n < 2:
        return f"One query decides nothing: {quality}."
    return (
        f"The difference may be chance: {quality}, {_p(p_holm)}; with {comparison.n} queries a true difference of "
        f"{comparison.mde:.3f} would be found four times in five, a smaller one less often."
    )


def _p(p_holm: float) -> str:
    return "p < 0.0001" if p_holm < 0.0001 else f"p = {p_holm:.2g}"
