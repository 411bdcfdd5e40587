"""One hit for every document, returned with the chunks around it, as in Librarian."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.base.bounds import Natural
from ragbench.base.types import QueryState
from ragbench.search.stages.stage import StateProperty, StateStage, fused, keep_hits

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class AddNeighbours(StateStage):
    """Keep the best hit of every document and return it with the `neighbours` (at least 0) chunks on either side.

    Seed 004, "Aggregate results", where the neighbours come from the hits; here they come from the document, if the
    filters admit them. A hit that already has a context keeps it.
    """

    neighbours: Natural = 1

    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "facets"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.CONTEXTS})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.PARENTS: "a parent is a context already"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Keep one hit per document and set its neighbours as context."""
        table, documents = index.chunks, index.chunks.document[fused(state).chunks]
        best = np.zeros(len(documents), dtype=np.bool_)
        best[np.unique(documents, return_index=True)[1]] = True
        ranking = keep_hits(state, best)
        allowed = index.allowed(state.filters)
        contexts = dict(state.contexts)
        for chunk in ranking.chunks.tolist():
            start, stop = table.chunks_of(int(table.document[chunk]))
            around = range(max(start, chunk - self.neighbours), min(stop, chunk + self.neighbours + 1))
            contexts.setdefault(chunk, tuple(chunk for chunk in around if allowed is None or allowed[chunk]))
        return replace(state.filtered("after_documents", ranking), contexts=contexts)

    def describe(self) -> str:
        return f"keep one per document with {self.neighbours} chunks on either side"
