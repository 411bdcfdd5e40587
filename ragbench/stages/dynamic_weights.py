"""Score-aware fusion: trust a source less when it cannot tell its hits apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.bounds import Checked, Positive, Share, Weight
from ragbench.stages.stage import NOTHING
from ragbench.types import QueryState, Ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class WeighByVariance(Checked):
    """Multiply the weights of `sources` by max(min_factor, variance / variance_threshold), at most 1; keep their sum.

    Seed 001, "Score-Aware Fusion". Scores are min-max scaled per query first: the variance of cosines (0.5 to 0.9) and
    of BM25 scores (0 to 30) cannot be compared as they are, the smaller scale would always look undecided. A list of
    fewer than two hits, or of equal scores, has variance 0. `variance_threshold` is above 0, `min_factor` between 0
    and 1. `weights` are those of fusion by source (1 when absent), which the factors will be multiplied with.
    """

    variance_threshold: Positive = 0.1
    min_factor: Share = 0.5
    sources: tuple[str, ...] = ("dense", "lexical")
    weights: Mapping[str, Weight] = field(default_factory=dict)

    needs: ClassVar[frozenset[str]] = NOTHING
    requires: ClassVar[frozenset[str]] = frozenset({"rankings"})
    provides: ClassVar[frozenset[str]] = frozenset({"dynamic_weights"})
    forbids: ClassVar[Mapping[str, str]] = {"fused": "the sources' weights would change too late"}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Weigh the sources of every state."""
        return [self._weighed(state) for state in states]

    def _weighed(self, state: QueryState) -> QueryState:
        present = [source for source in self.sources if source in state.rankings]
        factors = {
            source: min(1.0, max(self.min_factor, variance(state.rankings[source]) / self.variance_threshold))
            for source in present
        }
        base = {source: self.weights.get(source, 1.0) * state.weights.get(source, 1.0) for source in present}
        total = sum(base[source] * factor for source, factor in factors.items())
        if total == 0:
            return state
        scale = sum(base.values()) / total
        for source, factor in factors.items():
            state = state.with_weight(source, factor * scale)
        return state

    def describe(self) -> str:
        """In words."""
        return "weigh sources by how decided they are"


def variance(ranking: Ranking) -> float:
    """The population variance of a ranking's scores, scaled to run from 0 to 1."""
    if len(ranking) < 2:
        return 0.0
    scores = ranking.scores.astype(np.float64)
    spread = scores[0] - scores[-1]
    return float(np.var((scores - scores[-1]) / spread)) if spread > 0 else 0.0
