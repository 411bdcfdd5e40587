"""Score normalisation of lexical search v3: min-max over the hits of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.base.bounds import Share
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.stage import StateProperty, StateStage, current_ranking, with_current_ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class NormaliseScores(StateStage):
    """Map scores to (score - lowest) / (highest - lowest), clipped to [`low`, `high`], both between 0 and 1.

    Seed 002, "Post-ranking adjustments". Equal scores, or a single one, become `high`. The order stays, also when
    clipping makes scores equal. It acts on the fused ranking, or before fusion on that of `source`.
    """

    source: str = "lexical"  # result list that it changes before fusion
    low: Share = 0.02
    high: Share = 0.98

    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.NORMALISED})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.CALIBRATED: "a confidence between 0 and 1 is no longer one when it is stretched",
        StateProperty.NORMALISED: "scores have been normalised already",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise self.refused("high", f"must be above low {self.low:g}, got {self.high:g}")

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Normalise the ranking."""
        return with_current_ranking(state, self.source, self.normalise(current_ranking(state, self.source)))

    def normalise(self, ranking: Ranking) -> Ranking:
        """The same hits with scores between `low` and `high`."""
        if not len(ranking):
            return ranking
        scores = ranking.scores.astype(np.float64)
        spread = scores[0] - scores[-1]
        scaled = (scores - scores[-1]) / spread if spread > 0 else np.ones(len(scores))
        return Ranking.ordered(ranking.chunks, np.clip(scaled, self.low, self.high))

    def describe(self) -> str:
        return f"scale scores to {self.low:g} - {self.high:g}"
