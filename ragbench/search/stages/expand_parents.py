"""P13: search small chunks, return the larger ones that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Checked
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.stage import Fact, fused

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class ExpandToParents(Checked):
    """Replace every hit by its parent chunk with the best child's score; a parent appears once. Seed 000, P13.

    A chunk without a parent stays as it is, and so does one that already has a context.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({Fact.PARENTS})
    forbids: ClassVar[Mapping[str, str]] = {Fact.PARENTS: "hits have been expanded already"}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Expand every state's fused ranking; the parent of a guaranteed child is guaranteed."""
        return [self._expanded(state, index) for state in states]

    def _expanded(self, state: QueryState, index: Index) -> QueryState:
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
