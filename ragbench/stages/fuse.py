"""Fuse the sources' rankings by reciprocal rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.bounds import Checked, Weight
from ragbench.stages.stage import NOTHING
from ragbench.types import QueryState, Ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class Fuse(Checked):
    """Weighted reciprocal rank fusion: score(d) = sum over sources of weight / (k + rank), rank from 1.

    Cormack, Clarke and Buettcher, SIGIR 2009; weights as in seed 001. `weights` by source (default 1.0, at least 0)
    are multiplied by the state's own; a source of weight 0 is left out. `k` is at least 0. Ties go to the lower chunk
    number.
    """

    k: Weight = 60.0
    weights: Mapping[str, Weight] = field(default_factory=dict)

    needs: ClassVar[frozenset[str]] = NOTHING
    requires: ClassVar[frozenset[str]] = frozenset({"rankings"})
    provides: ClassVar[frozenset[str]] = frozenset({"fused"})
    forbids: ClassVar[Mapping[str, str]] = {"fused": "the rankings have been fused already"}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Set the fused ranking of every state."""
        return [replace(state, fused=self.fuse(state)) for state in states]

    def weight(self, state: QueryState, source: str) -> float:
        """The weight of a source for a query: the configured one times the state's factor."""
        return self.weights.get(source, 1.0) * state.weights.get(source, 1.0)

    def fuse(self, state: QueryState) -> Ranking:
        """One ranking of all chunks that any source of positive weight found."""
        lists = [
            (ranking.chunks, self.weight(state, source) / (self.k + np.arange(1, len(ranking) + 1)))
            for source, ranking in sorted(state.rankings.items())
            if self.weight(state, source) > 0 and len(ranking)
        ]
        if not lists:
            return Ranking.empty()
        chunks, places = np.unique(np.concatenate([numbers for numbers, _ in lists]), return_inverse=True)
        scores = np.bincount(places, weights=np.concatenate([shares for _, shares in lists]))
        return Ranking.of(chunks, scores)

    def describe(self) -> str:
        """In words."""
        weights = ", ".join(f"{source} x{weight:g}" for source, weight in sorted(self.weights.items()) if weight != 1.0)
        return f"fuse by reciprocal rank (k {self.k:g}{', ' + weights if weights else ''})"
