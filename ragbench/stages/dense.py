"""Retrieve by meaning: the nearest chunks to the query's vector."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.bounds import Count
from ragbench.stages.stage import Retriever
from ragbench.types import QueryState, Ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class RetrieveDense(Retriever):
    """Embed the text for source `dense` and take the `depth` (at least 1) chunks of highest cosine similarity.

    A hypothesis placed in the state by HyDE is embedded as a passage instead (Gao et al., ACL 2023).
    """

    depth: Count = 100

    source: ClassVar[str] = "dense"
    needs: ClassVar[frozenset[str]] = frozenset({"dense", "encoder"})

    def question(self, state: QueryState) -> Hashable:
        """The text, whether it stands for a passage, and the filters."""
        return "hypothesis" in state.texts, state.texts.get("hypothesis", state.text_for(self.source)), state.filters

    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """Nearest chunks of every state's text."""
        vectors = self._vectors(states, index)
        rankings: dict[int, Ranking] = {}
        for filters in dict.fromkeys(state.filters for state in states):
            places = [place for place, state in enumerate(states) if state.filters == filters]
            found = index.dense.search(vectors[places], self.depth, index.allowed(filters))
            rankings.update(zip(places, found, strict=True))
        return [rankings[place] for place in range(len(states))]

    def _vectors(self, states: Sequence[QueryState], index: Index) -> NDArray[np.float32]:
        """One row for every state: the vector of its hypothesis as a passage, else of its text as a query."""
        supposed = np.array(["hypothesis" in state.texts for state in states], dtype=np.bool_)
        vectors = np.empty((len(states), index.encoder.dim), dtype=np.float32)
        if supposed.any():
            passages = [state.texts["hypothesis"] for state in states if "hypothesis" in state.texts]
            vectors[supposed] = index.encoder.encode_passages(passages)
        if not supposed.all():
            queries = [state.text_for(self.source) for state in states if "hypothesis" not in state.texts]
            vectors[~supposed] = index.encoder.encode_queries(queries)
        return vectors

    def describe(self) -> str:
        """In words."""
        return f"retrieve {self.depth} by meaning"
