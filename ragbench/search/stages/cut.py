"""Keep the first hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.base.bounds import Checked, Count
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.stage import FREE, NOTHING, Fact, fused

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class Cut(Checked):
    """Keep the first `top_n` (at least 1) hits, and in addition all guaranteed hits."""

    top_n: Count = 100

    needs: ClassVar[frozenset[str]] = NOTHING
    requires: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({Fact.CUT})
    forbids: ClassVar[Mapping[str, str]] = FREE

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Shorten every state's fused ranking."""
        return [replace(state, fused=self._first(state)) for state in states]

    def _first(self, state: QueryState) -> Ranking:
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
