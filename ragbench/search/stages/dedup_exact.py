"""P8, first stage: keep one of several equal texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.base.bounds import Checked
from ragbench.base.types import QueryState
from ragbench.search.stages.stage import NOTHING, Fact, fused, keep_hits

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class DropEqualTexts(Checked):
    """Keep the first of the hits whose texts are equal, by the digests in the chunk table. Seed 000, P8 stage 1."""

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    provides: ClassVar[frozenset[str]] = NOTHING
    forbids: ClassVar[Mapping[str, str]] = {}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Filter every state's fused ranking."""
        return [self._filtered(state, index) for state in states]

    def _filtered(self, state: QueryState, index: Index) -> QueryState:
        ranking = fused(state)
        first = np.zeros(len(ranking), dtype=np.bool_)
        first[np.unique(index.chunks.content_hash[ranking.chunks], return_index=True)[1]] = True
        return state.filtered("after_content_dedup", keep_hits(state, first))

    def describe(self) -> str:
        return "drop equal texts"
