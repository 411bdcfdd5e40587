"""Note-diverse selection of lexical search v3: every document once before any document twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Count
from ragbench.base.types import QueryState
from ragbench.search.stages.stage import StateProperty, StateStage, current_ranking, with_current_ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class KeepDiverse(StateStage):
    """Keep `top_k` (at least 1) hits: the best of every document, then the best of the others.

    Seed 002, `selectDiverseTopK`; the seed gives only its name. The order of the kept hits does not change. It acts on
    the fused ranking, in which guaranteed hits stay and do not count, or before fusion on that of `source`.
    """

    source: str = "lexical"  # result list that it changes before fusion
    top_k: Count = 30

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.PARENTS: "it chooses among chunks, not their parents"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Shorten the ranking."""
        ranking = current_ranking(state, self.source)
        documents = index.chunks.document[ranking.chunks]
        keep = np.zeros(len(ranking), dtype=np.bool_)
        if state.fused is not None and state.guaranteed:
            keep = np.isin(ranking.chunks, list(state.guaranteed))
        keep[~keep] = self.select(documents[~keep])
        return with_current_ranking(state, self.source, ranking.keep(keep))

    def select(self, documents: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which hits stay, shape (n,), given the document of each, best first."""
        first = np.zeros(len(documents), dtype=np.bool_)
        first[np.unique(documents, return_index=True)[1]] = True
        order = np.concatenate([np.flatnonzero(first), np.flatnonzero(~first)])
        keep = np.zeros(len(documents), dtype=np.bool_)
        keep[order[: self.top_k]] = True
        return keep

    def returning(self, n: int) -> KeepDiverse:
        """The stage for a search that returns `n` hits."""
        return replace(self, top_k=n)

    def last_choice(self, n: int) -> KeepDiverse | None:
        """The stage that chooses `n` of the hits that this one keeps; None where it keeps no more."""
        return KeepDiverse(top_k=n) if self.top_k > n else None

    def describe(self) -> str:
        return f"keep {self.top_k} of many documents"
