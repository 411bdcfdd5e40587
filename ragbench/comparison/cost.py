"""What a change adds to the p95 of a query, and whether that is within its budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ragbench.comparison.contrast import Contrast
from ragbench.timing.intervals import Samples, weighted_sum

if TYPE_CHECKING:
    import pandas as pd

Axis = Literal["within", "over", "open"]


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
    """The cost axis of a verdict. `budget_ms` is None without a limit, `added` None where time was not measured.

    `busy` says why the times cannot be trusted; empty when they can.
    """

    added: Added | None
    budget_ms: float | None
    busy: str = ""

    @property
    def axis(self) -> Axis:
        """Within, over, or open: not measured, or the interval contains the budget."""
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
        time = "time was not measured" if self.added is None else f"p95 {self.added.text}"
        if self.budget_ms is None:
            return f"{time}, no budget is set"
        if self.added is None:
            return f"{time}, the budget is +{self.budget_ms:g} ms"
        if self.busy:
            return f"{time}, not to be trusted: {self.busy}"
        where = {"within": "within", "over": "over", "open": "perhaps over"}[self.axis]
        return f"{time}, {where} the budget of +{self.budget_ms:g} ms"


def added_p95(contrast: Contrast, times: Mapping[str, pd.DataFrame], seed: int) -> Added | None:
    """The difference in p95 with its 95% interval (`ragbench.timing.intervals`); None where an arm was not timed.

    `times` has the samples of every arm: qid and total, in milliseconds.
    """
    weights = {arm: weight for arm, weight in contrast.weights.items() if weight}
    if not weights or any(arm not in times for arm in weights):
        return None
    samples = {
        arm: Samples(times[arm]["qid"].tolist(), times[arm]["total"].to_numpy(dtype=np.float64)) for arm in weights
    }
    if not set.intersection(*(set(each.qids) for each in samples.values())):
        return None
    found = weighted_sum([(samples[arm], weight) for arm, weight in weights.items()], seed)
    return Added(*(round(found[name], 6) for name in ("p95", "p95_low", "p95_high")))
