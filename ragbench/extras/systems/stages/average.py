"""Fuse by a weighted average of scores, as Librarian's hybrid mode does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Weight
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.stage import StateProperty, StateStage

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class AverageScores(StateStage):
    """score(d) = sum over sources of weight * score / sum of weights; a source that lacks a chunk gives it 0.

    Seed 004, "Merge -> Weighted Average" with `semantic_weight` 0.5. `weights` (default 1.0, at least 0) are by source;
    those of the state's sources count, a source of weight 0 is excluded: `{dense: 1.0, lexical: 0.0}` is the semantic
    mode. Scores below 0 count as 0. If the best score of a source exceeds 1, its scores are divided by it, so that
    BM25 scores and cosines compare. The result is between 0 and 1.
    """

    weights: Mapping[str, Weight] = field(default_factory=lambda: {"dense": 0.5, "lexical": 0.5})

    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "the rankings have been fused already"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Set the fused ranking."""
        return replace(state, fused=self.average(state))

    def average(self, state: QueryState) -> Ranking:
        """One ranking of all chunks that any source of positive weight found."""
        weights = {source: self.weights.get(source, 1.0) for source in sorted(state.rankings)}
        weights = {source: weight for source, weight in weights.items() if weight > 0}
        if not weights:
            return Ranking.empty()
        total = sum(weights.values())
        rankings = [state.rankings[source] for source in weights]
        shares = [weight / total * _scaled_scores(state.rankings[source]) for source, weight in weights.items()]
        chunks, places = np.unique(np.concatenate([ranking.chunks for ranking in rankings]), return_inverse=True)
        return Ranking.of(chunks, np.bincount(places, weights=np.concatenate(shares), minlength=len(chunks)))

    def describe(self) -> str:
        return f"average scores ({', '.join(f'{name} x{weight:g}' for name, weight in sorted(self.weights.items()))})"


def _scaled_scores(ranking: Ranking) -> NDArray[np.float64]:
    scores = np.maximum(ranking.scores.astype(np.float64), 0.0)
    return scores / max(1.0, float(scores.max(initial=0.0)))
