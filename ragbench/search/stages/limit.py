"""P8: no document may fill the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Checked, Natural
from ragbench.base.types import QueryState
from ragbench.search.stages.stage import NOTHING, Fact, fused, keep_hits

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class LimitPerDocument(Checked):
    """Keep the first `max_per_doc` hits of every document (0: no limit). Seed 000, P8 component B."""

    max_per_doc: Natural = 2

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    provides: ClassVar[frozenset[str]] = NOTHING
    forbids: ClassVar[Mapping[str, str]] = {Fact.PARENTS: "parents would pass by the limit on their children"}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Filter every state's fused ranking."""
        return [
            state.filtered(
                "after_doc_limit", keep_hits(state, self._within_limit(index.chunks.document[fused(state).chunks]))
            )
            for state in states
        ]

    def _within_limit(self, documents: NDArray[np.int32]) -> NDArray[np.bool_]:
        if self.max_per_doc == 0:
            return np.ones(len(documents), dtype=np.bool_)
        seen: dict[int, int] = {}
        within = np.zeros(len(documents), dtype=np.bool_)
        for place, document in enumerate(documents.tolist()):
            seen[document] = seen.get(document, 0) + 1
            within[place] = seen[document] <= self.max_per_doc
        return within

    def describe(self) -> str:
        return f"keep {self.max_per_doc} per document"
