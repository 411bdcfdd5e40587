"""Ranking of lexical search v3: BM25+ over five fields, of the candidates, by the salient terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Count, Weight, one_of
from ragbench.base.types import ExpandedQuery, QueryState, Ranking
from ragbench.search.stages.stage import FAILURES, StateProperty, StateStage

if TYPE_CHECKING:
    from ragbench.index.index import Index

SOURCE = "lexical"
FIELDS = ("title", "tags", "heading", "path", "body")


@dataclass(frozen=True)
class RankCandidates(StateStage):
    """Add the ranking of source `lexical`: the `depth` (at least 1) best chunks of the candidates, or of all documents.

    Seed 002, "Full-text lexical ranking" (`index.prefixes` has the formula): any salient term, or one that
    begins with it, in a field of `weights` (at least 0); the seed ranks three times as many hits as it returns. When
    a search fails, the documents that hold the query as a substring get the score 1 / place, one chunk each, and no
    later stage runs; when that fails, too, the result is empty ("Failure fallback").
    """

    depth: Count = 90  # three times the number of results that are kept
    weights: Mapping[Annotated[str, one_of(*FIELDS)], Weight] = field(
        default_factory=lambda: {"title": 5.0, "tags": 4.0, "heading": 2.5, "path": 1.5, "body": 1.0}
    )

    by: ClassVar[str] = "words"
    needs: ClassVar[frozenset[str]] = frozenset({"prefixes", "scan", "facets"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS, StateProperty.V3_RANKING})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "its ranking would come too late to be fused"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Add the ranking of the candidates."""
        text = (state.expanded or ExpandedQuery(state.query.text)).ranking_text
        return state.with_ranking(
            SOURCE, index.prefixes.search(text, self.depth, self.weights, _candidates(state, index))
        )

    def when_failed(self, state: QueryState, index: Index) -> Ranking:
        """The documents that hold the query, or no hits when that search fails, too."""
        try:
            return self.by_place(state, index)
        except FAILURES:
            return Ranking.empty()

    def by_place(self, state: QueryState, index: Index) -> Ranking:
        """The documents that hold the query, in the order they are found, with score 1 / place."""
        passing = None if state.filters is None else index.passing(state.filters)
        files, _ = index.scan.recall([state.query.text], self.depth, passing)
        allowed = index.allowed(state.filters)
        chunks = (range(*index.chunks.chunks_of(document)) for document in files)
        first = (next((c for c in chunks_of_file if allowed is None or allowed[c]), None) for chunks_of_file in chunks)
        hits = [chunk for chunk in first if chunk is not None]
        return Ranking.ordered(hits, 1.0 / np.arange(1, len(hits) + 1))

    def returning(self, n: int) -> RankCandidates:
        """The stage for a search that returns `n` hits."""
        return replace(self, depth=max(self.depth, 3 * n))

    def explain(self, state: QueryState, index: Index, chunk: int) -> dict[str, Any]:
        """`lexical_matches` of a chunk."""
        text = (state.expanded or ExpandedQuery(state.query.text)).ranking_text
        matches = index.prefixes.matches(text, chunk, self.weights)
        return {"lexical_matches": [{"field": f, "query": q, "weight": w} for f, q, w in matches]}

    def describe(self) -> str:
        return f"rank {self.depth} of them by salient terms"


def _candidates(state: QueryState, index: Index) -> NDArray[np.bool_] | None:
    """Which chunks may be ranked, None for all."""
    allowed = index.allowed(state.filters)
    if state.candidates is None:
        return allowed
    documents = np.zeros(index.chunks.n_documents, dtype=np.bool_)
    documents[list(state.candidates)] = True
    mask = documents[index.chunks.document]
    return mask if allowed is None else mask & allowed
