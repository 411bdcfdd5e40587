"""Turn fused scores into confidences between 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.base.bounds import Checked, Positive
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.stage import NOTHING, Fact, fused

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class Calibrate(Checked):
    """Sigmoid of the fused score: 1 / (1 + exp(-steepness * (score - threshold))), seed 001 "Score Calibration".

    `threshold` is the score that maps to 0.5; `steepness` (above 0) is how fast confidence grows around it. The
    mapping is absolute: it does not depend on the other hits.
    """

    threshold: float = 0.035
    steepness: Positive = 150.0

    needs: ClassVar[frozenset[str]] = NOTHING
    requires: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({Fact.CALIBRATED})
    forbids: ClassVar[Mapping[str, str]] = {Fact.CALIBRATED: "scores have been calibrated already"}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Map the scores of every state's fused ranking; order is kept."""
        return [replace(state, fused=self.calibrate(fused(state))) for state in states]

    def calibrate(self, ranking: Ranking) -> Ranking:
        """The same hits with confidences in place of scores."""
        exponent = np.clip(-self.steepness * (ranking.scores.astype(np.float64) - self.threshold), -700, 700)
        return Ranking.ordered(ranking.chunks, 1.0 / (1.0 + np.exp(exponent)))

    def describe(self) -> str:
        """In words."""
        return f"calibrate (half at {self.threshold:g})"
