"""Recency: boost documents that were changed recently."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.options import Share, Weight, option
from ragbench.corpus.metadata import Date, timestamp
from ragbench.search.stages.stage import Boost, Index, StateProperty

_DAY = 86_400.0


@option(
    "recency",
    "Boost recently changed documents (source 001); only in `ragdocs*`, as dates of the corpus are arbitrary.",
)
@dataclass(frozen=True)
class BoostRecent(Boost):
    """Multiply fused scores by 1 + bias * (tier - 1) / 0.5. Seed 001, "Recency Bias".

    `tiers`: (days, multiplier) pairs; a document gets the first tier with at least as many days as its age. Seed 001
    has 1.2 up to 7 days and 1.1 up to 30. `bias` (0 to 1): 0.5 applies the tiers unchanged, 0 turns them off. `now`: an
    ISO date from which ages are counted; null takes the clock. A document dated in the future has age 0.
    """

    bias: Share = 0.5  # 0.5 applies the tiers as they are
    # pairs of days and multiplier, by increasing age
    tiers: tuple[tuple[Weight, Weight], ...] = ((7.0, 1.2), (30.0, 1.1))
    now: Date | None = None  # ISO date from which ages are computed; null: today

    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "modified"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.RECENCY})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.CALIBRATED: "a confidence times 1.2 may exceed 1: boost before calibration",
        StateProperty.RECENCY: "recency has been counted already",
        StateProperty.PARENTS: "it boosts chunks",
    }

    def factors(self, documents: NDArray[np.int32], index: Index) -> NDArray[np.float64]:
        """The factors by the ages of the documents."""
        now = timestamp(self.now)
        return self.by_time(index.modified[documents], time.time() if now is None else now)

    def by_time(self, modified: NDArray[np.float64], now: float) -> NDArray[np.float64]:
        """The factor of every document from its time, seconds since the epoch, shape (n,)."""
        age = np.maximum(now - modified, 0.0) / _DAY
        tier = np.ones_like(age)
        for days, multiplier in sorted(self.tiers, reverse=True):
            tier[age <= days] = multiplier
        return 1.0 + self.bias * (tier - 1.0) / 0.5

    def describe(self) -> str:
        return f"boost what is recent (bias {self.bias:g})"
