"""Dense retrieval: the nearest chunks to the query's vector."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Count, Name, Share
from ragbench.base.types import QueryState, Ranking
from ragbench.index.spec import VectorsSpec
from ragbench.search.stages.stage import Retriever

if TYPE_CHECKING:
    from ragbench.index.index import Index
    from ragbench.models import Encoder


@dataclass(frozen=True)
class RetrieveDense(Retriever):
    """Embed the text and take the `depth` (at least 1) chunks of highest cosine similarity.

    `document` (0 to 1) is the share of the cosine with the mean vector of a chunk's document in its score. `source` is
    the name of the ranking. `index`: the passages and the encoder of this source, when they differ from those of the
    index. If the state has a hypothesis of HyDE, it is embedded as a passage instead (Gao et al., ACL 2023).
    """

    depth: Count = 100
    document: Share = 0.0  # share of the cosine with the mean vector of a chunk's document
    source: Name = "dense"  # name of its result list
    index: VectorsSpec | None = None  # its passages and encoder, when they differ from `index`

    by: ClassVar[str] = "meaning"

    @property
    def needs(self) -> frozenset[str]:
        """The vectors, the model, and the mean vectors of documents if they have a share."""
        parts = ("dense", "encoder", *(("centroids",) if self.document else ()))
        return frozenset(self._part(part) for part in parts)

    def question(self, state: QueryState) -> Hashable:
        """Whether the text is a hypothesis, the text, and the filters."""
        return "hypothesis" in state.texts, state.texts.get("hypothesis", self._text(state)), state.filters

    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """Nearest chunks of every state's text."""
        vectors = self._vectors(states, index.part(self._part("encoder")))
        rankings: dict[int, Ranking] = {}
        for filters in dict.fromkeys(state.filters for state in states):
            places = [place for place, state in enumerate(states) if state.filters == filters]
            found = self._search(vectors[places], index, index.allowed(filters))
            rankings.update(zip(places, found, strict=True))
        return [rankings[place] for place in range(len(states))]

    def _search(self, vectors: NDArray[np.float32], index: Index, allowed: NDArray[np.bool_] | None) -> list[Ranking]:
        found: list[Ranking] = index.part(self._part("dense")).search(vectors, self.depth, allowed)
        if self.document:
            means = index.part(self._part("centroids"))
            found = [
                means.search(vector, ranking, self.document, self.depth, allowed)
                for vector, ranking in zip(vectors, found, strict=True)
            ]
        return [replace(ranking, query_vector=vector) for vector, ranking in zip(vectors, found, strict=True)]

    def scores(self, state: QueryState, chunks: NDArray[np.int32], index: Index) -> NDArray[np.float64] | None:
        """The scores of any chunks, computed as those it returned."""
        query = state.rankings[self.source].query_vector
        if query is None:
            return None
        if self.document:
            means = index.part(self._part("centroids"))
            return np.asarray(means.scores(query, chunks, self.document), dtype=np.float64)
        return np.asarray(index.part(self._part("dense")).vectors[chunks] @ query, dtype=np.float64)

    def _part(self, kind: str) -> str:
        return f"{kind}:{self.source}" if self.index else kind

    def _text(self, state: QueryState) -> str:
        return state.texts.get(self.source, state.text_for("dense"))

    def _vectors(self, states: Sequence[QueryState], encoder: Encoder) -> NDArray[np.float32]:
        """One row for every state: the vector of its hypothesis as a passage, else of its text as a query."""
        has_hypothesis = np.array(["hypothesis" in state.texts for state in states], dtype=np.bool_)
        vectors = np.empty((len(states), encoder.dim), dtype=np.float32)
        if has_hypothesis.any():
            passages = [state.texts["hypothesis"] for state in states if "hypothesis" in state.texts]
            vectors[has_hypothesis] = encoder.encode_passages(passages)
        if not has_hypothesis.all():
            queries = [self._text(state) for state in states if "hypothesis" not in state.texts]
            vectors[~has_hypothesis] = encoder.encode_queries(queries)
        vectors.flags.writeable = False
        return vectors

    def returning(self, n: int) -> RetrieveDense:
        """The stage for a search that returns `n` hits."""
        return replace(self, depth=max(self.depth, n))

    def describe(self) -> str:
        model = f" ({self.index.encoder.name})" if self.index else ""
        return f"retrieve {self.depth} by vector similarity{model}"
