"""Score-aware fusion: trust a source less when it cannot tell its best hits from the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ragbench.base.bounds import Checked, Positive, Share, Weight
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.stage import NOTHING, Fact

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class WeighByDecisiveness(Checked):
    """Multiply the weights of `sources` by max(min_factor, decisiveness / threshold), at most 1; keep their sum.

    Seed 001, "Score-Aware Fusion", with `measure` `variance` as there: the variance of a source's scores instead of
    decisiveness, at a `threshold` of 0.1. Variances cannot be compared with one threshold, because cosines run from 0.5
    to 0.9 and BM25 scores from 0 to 30; scaled to [0, 1] first, a list with one outstanding hit has the smallest
    variance. `threshold` is above 0, `min_factor` between 0 and 1. `weights` are the
    weights of fusion by source (1 when absent), which the factors multiply.
    """

    threshold: Positive = 0.5  # decisiveness from which a source has its full weight
    min_factor: Share = 0.5
    measure: Literal["decisiveness", "variance"] = "decisiveness"  # variance: as seed 001, with a threshold of 0.1
    sources: tuple[str, ...] = ("dense", "lexical")
    weights: Mapping[str, Weight] = field(default_factory=dict)

    needs: ClassVar[frozenset[str]] = NOTHING
    requires: ClassVar[frozenset[str]] = frozenset({Fact.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({Fact.DYNAMIC_WEIGHTS})
    forbids: ClassVar[Mapping[str, str]] = {Fact.FUSED: "the sources' weights would change too late"}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Weigh the sources of every state."""
        return [self._weighed(state) for state in states]

    def _weighed(self, state: QueryState) -> QueryState:
        present = [source for source in self.sources if source in state.rankings]
        measure = decisiveness if self.measure == "decisiveness" else _variance
        factors = {
            source: min(1.0, max(self.min_factor, measure(state.rankings[source]) / self.threshold))
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
        return "weigh sources by " + ("how decided they are" if self.measure == "decisiveness" else "variance")


def _variance(ranking: Ranking) -> float:
    """The variance of the scores as they are, 0 for none."""
    return float(ranking.scores.astype(np.float64).var()) if len(ranking) else 0.0


def decisiveness(ranking: Ranking) -> float:
    """How much of the fall from the best score to the worst lies within the first tenth of the hits, 0 to 1.

    0 when all scores are equal, 1 when all but the best are equal, about 0.1 when they fall evenly. It does not change
    when all scores are multiplied by a number or a number is added to all. 0 for fewer than two hits.
    """
    if len(ranking) < 2:
        return 0.0
    scores = ranking.scores.astype(np.float64)
    fall = scores[0] - scores[-1]
    return float((scores[0] - scores[max(1, len(scores) // 10)]) / fall) if fall > 0 else 0.0
