"""Retrieve by words: BM25F over the fields of the lexical index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ragbench.bounds import Count
from ragbench.stages.stage import Retriever
from ragbench.types import QueryState, Ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class RetrieveLexical(Retriever):
    """Take the `depth` (at least 1) chunks that score highest for any of the words of the text for source `lexical`."""

    depth: Count = 100

    source: ClassVar[str] = "lexical"
    needs: ClassVar[frozenset[str]] = frozenset({"lexical"})

    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """Best chunks of every state's text."""
        return [
            index.lexical.search(state.text_for(self.source), self.depth, index.allowed(state.filters))
            for state in states
        ]

    def describe(self) -> str:
        """In words."""
        return f"retrieve {self.depth} by words"
