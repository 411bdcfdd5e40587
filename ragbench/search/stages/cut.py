"""Replace chunks by their parents (P13), and keep the first hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.options import Count, option
from ragbench.search.stages.stage import Index, QueryState, Ranking, Reorder, StateProperty, StateStage, fused


@option("p13.expand=expand_only")
@option("p13.expand")
@dataclass(frozen=True)
class ExpandToParents(StateStage):
    """Replace every hit by its parent chunk with the best child's score; a parent appears once. Seed 000, P13.

    A chunk without a parent stays as it is, and so does one that already has a context.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.PARENTS})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.PARENTS: "hits have been expanded already"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Expand the fused ranking; the parent of a guaranteed child is guaranteed."""
        ranking = fused(state)
        units = _parents_or_selves(ranking.chunks, state, index)
        first = np.sort(np.unique(units, return_index=True)[1])
        children = sorted(state.guaranteed)
        named = _parents_or_selves(np.array(children, dtype=np.int32), state, index).tolist()
        return replace(
            state,
            fused=Ranking.ordered(units[first], ranking.scores[first]),
            guaranteed={unit: state.guaranteed[child] for unit, child in zip(named, children, strict=True)},
        )

    def describe(self) -> str:
        return "expand to parents"


def _parents_or_selves(chunks: NDArray[np.int32], state: QueryState, index: Index) -> NDArray[np.int32]:
    """Every chunk's parent, or the chunk itself if it has no parent or has a context."""
    parents = index.chunks.parent[chunks]
    return np.where((parents >= 0) & ~np.isin(chunks, list(state.contexts)), parents, chunks)


@option("class=Cut")
@dataclass(frozen=True)
class Cut(Reorder):
    """Keep the first `top_n` (at least 1) hits, and in addition all guaranteed hits."""

    top_n: Count = 100  # number of results

    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.CUT})

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        """The first hits."""
        ranking = fused(state)
        if not state.guaranteed:
            return ranking.head(self.top_n)
        guaranteed = np.isin(ranking.chunks, list(state.guaranteed))
        return ranking.keep(guaranteed | (np.cumsum(~guaranteed) <= self.top_n))

    def returning(self, n: int) -> Cut:
        """The stage for a search that returns `n` hits."""
        return replace(self, top_n=max(self.top_n, n))

    def describe(self) -> str:
        return f"keep {self.top_n}"
