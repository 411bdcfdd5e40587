"""What a change adds to the p95 of a query, and whether that is within its budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ragbench.comparison.contrast import Contrast

if TYPE_CHECKING:
    import pandas as pd

Axis = Literal["within", "over", "open"]
_RESAMPLES = 2_000


@dataclass(frozen=True)
class Added:
    """Milliseconds added to p95 (negative: saved) with their interval."""

    p95_ms: float
    low_ms: float
    high_ms: float

    @property
    def text(self) -> str:
        """As a person reads it: `+12 ms [+9, +16]`."""
        return f"{self.p95_ms:+.0f} ms [{self.low_ms:+.0f}, {self.high_ms:+.0f}]"


@dataclass(frozen=True)
class Cost:
    """The cost axis of a verdict: `budget_ms` None sets no limit, `added` None was not measured.

    `busy` says why the times are not to be trusted, empty when they are.
    """

    added: Added | None
    budget_ms: float | None
    busy: str = ""

    @property
    def axis(self) -> Axis:
        """Within, over, or open where it was not measured, or its interval reaches across the budget."""
        if self.budget_ms is None:
            return "within"
        if self.added is None or self.busy:
            return "open"
        if self.added.low_ms > self.budget_ms:
            return "over"
        return "within" if self.added.high_ms <= self.budget_ms else "open"

    @property
    def text(self) -> str:
        """The axis with its reason: `p95 +12 ms [+9, +16], within the budget of +50 ms`."""
        told = "time was not measured" if self.added is None else f"p95 {self.added.text}"
        if self.budget_ms is None:
            return f"{told}, no budget is set"
        if self.added is None:
            return f"{told}, the budget is +{self.budget_ms:g} ms"
        if self.busy:
            return f"{told}, not to be trusted: {self.busy}"
        where = {"within": "within", "over": "over", "open": "perhaps over"}[self.axis]
        return f"{told}, {where} the budget of +{self.budget_ms:g} ms"


def added(contrast: Contrast, times: Mapping[str, pd.DataFrame], seed: int, confidence: float) -> Added | None:
    """The contrast in p95 with its interval, None where an arm was not timed.

    `times` has the samples of every arm: qid and total, in milliseconds. Queries are resampled with all of their
    samples, the same ones for every arm: samples of one query are alike, and arms are timed side by side.
    """
    weights = {arm: weight for arm, weight in contrast.weights.items() if weight}
    if not weights or any(arm not in times for arm in weights):
        return None
    by_query = {arm: {str(q): each for q, each in times[arm].groupby("qid")["total"]} for arm in weights}
    qids = sorted(set.intersection(*(set(samples) for samples in by_query.values())))
    if not qids:
        return None
    drawn = np.random.default_rng([seed, 2]).integers(len(qids), size=(_RESAMPLES, len(qids)))
    point, resampled = 0.0, np.zeros(_RESAMPLES)
    for arm, weight in weights.items():
        least = min(len(by_query[arm][qid]) for qid in qids)
        samples = np.stack([by_query[arm][qid].to_numpy(dtype=np.float64)[:least] for qid in qids])
        point += weight * float(np.percentile(samples, 95))
        resampled += weight * np.percentile(samples[drawn].reshape(_RESAMPLES, -1), 95, axis=1)
    tail = 50 * (1 - confidence)
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return Added(*(round(float(each), 6) for each in (point, low, high)))
