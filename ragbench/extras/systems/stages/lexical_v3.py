"""Lexical search v3 (seed 002): recall of documents, ranking of candidates by terms, merging with semantic hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from ragbench.base.options import Count, Factor, Weight, one_of, option
from ragbench.extras.systems.parts.names import tags_in
from ragbench.extras.systems.state import ExpandedQuery, RecalledNotes, SystemProperty
from ragbench.search.stages.stage import FAILURES, Index, QueryState, Ranking, StateProperty, StateStage


@option("recall", "Rank only documents that contain a query term as a substring; rank_v3 reads them (source 002).")
@dataclass(frozen=True)
class RecallBySubstring(StateStage):
    """Keep at most `limit` (10 to 1000) documents that hold the queries or the salient terms as substrings.

    Seed 002, "Candidate recall": first those whose path holds the most terms, then those whose content does. Terms of
    less than 3 characters are ignored, or of less than 2 when they hold CJK characters. Without query expansion the
    query is the only term.
    """

    limit: Annotated[int, Interval(ge=10, le=1000)] = 200

    needs: ClassVar[frozenset[str]] = frozenset({"scan", "facets"})
    provides: ClassVar[frozenset[str]] = frozenset({SystemProperty.CANDIDATES})
    forbids: ClassVar[Mapping[str, str]] = {
        SystemProperty.V3_RANKING: "they have been ranked already",
        StateProperty.FUSED: "it would come too late to be ranked",
    }

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Set the candidates of a query."""
        expanded = ExpandedQuery.of(state)
        terms = dict.fromkeys(text.lower() for text in (*expanded.queries, *expanded.salient_terms))
        allowed = None if state.filters is None else index.passing(state.filters)
        files, by_path = index.scan.recall(terms, self.limit, allowed)
        note = f"{len(files)} candidates hold a term, {by_path} of them in their path"
        return state.with_fact(RecalledNotes(files)).with_note(note)

    def returning_all(self, n: int) -> RecallBySubstring:
        """The stage for a search that returns all, at most `n` hits."""
        return replace(self, limit=n)

    def describe(self) -> str:
        return f"recall {self.limit} documents by substring"


SOURCE = "lexical"
FIELDS = ("title", "tags", "heading", "path", "body")


@option("rank_v3", "BM25+ with prefix matching over five fields; replaces BM25F (source 002).")
@dataclass(frozen=True)
class RankCandidates(StateStage):
    """Add the ranking of source `lexical`: the `depth` (at least 1) best chunks of the candidates, or of all documents.

    Seed 002, "Full-text lexical ranking" (`index.prefixes` has the formula): any salient term, or one that
    begins with it, in a field of `weights` (at least 0); the seed ranks three times as many hits as it returns. When
    a search fails, the documents that hold the query as a substring get the score 1 / place, one chunk each, and no
    later stage runs; when that fails, too, the result is empty ("Failure fallback").
    """

    replaces: ClassVar[tuple[str, ...]] = ("lexical",)
    depth: Count = 90  # three times the number of results that are kept
    weights: Mapping[Annotated[str, one_of(*FIELDS)], Weight] = field(
        default_factory=lambda: {"title": 5.0, "tags": 4.0, "heading": 2.5, "path": 1.5, "body": 1.0}
    )

    by: ClassVar[str] = "words"
    needs: ClassVar[frozenset[str]] = frozenset({"prefixes", "scan", "facets"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS, SystemProperty.V3_RANKING})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "its ranking would come too late to be fused"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Add the ranking of the candidates."""
        text = ExpandedQuery.of(state).ranking_text
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
        text = ExpandedQuery.of(state).ranking_text
        matches = index.prefixes.matches(text, chunk, self.weights)
        return {"lexical_matches": [{"field": f, "query": q, "weight": w} for f, q, w in matches]}

    def describe(self) -> str:
        return f"rank {self.depth} of them by salient terms"


def _candidates(state: QueryState, index: Index) -> NDArray[np.bool_] | None:
    """Which chunks may be ranked, None for all."""
    allowed = index.allowed(state.filters)
    if (candidates := state.fact(RecalledNotes)) is None:
        return allowed
    documents = np.zeros(index.chunks.n_documents, dtype=np.bool_)
    documents[list(candidates.documents)] = True
    mask = documents[index.chunks.document]
    return mask if allowed is None else mask & allowed


@option(
    "merge",
    "Merge lexical and dense results by score instead of rank; the lexical score wins for chunks in both (source 002).",
)
@dataclass(frozen=True)
class MergeScores(StateStage):
    """One ranking of the hits of `lexical` and `dense`; a chunk that both found keeps its lexical score alone.

    Seed 002, "Semantic Mode". Scores, at least 0, are multiplied by the source's weight (at least 0; at 0 the source is
    omitted), and those of lexical hits also by `tag_match_boost` (at least 1) if a tag of the document begins with a
    term of the query. If the highest exceeds 1, all are divided by it. Equal scores stay in the order of their source,
    lexical first. With `lexical_for_tags` a query with a #tag gets lexical hits only. Other sources are ignored.
    """

    replaces: ClassVar[tuple[str, ...]] = ("fuse",)
    lexical_weight: Weight = 1.0  # factor of lexical scores; 0: omitted
    dense_weight: Weight = 1.0  # factor of dense scores; 0: omitted
    tag_match_boost: Factor = 1.1  # factor where a tag begins with a term of the query
    lexical_for_tags: bool = True  # lexical hits only for queries with a #tag

    needs: ClassVar[frozenset[str]] = frozenset({"prefixes"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "the rankings have been fused already"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Set the fused ranking."""
        return replace(state, fused=self._merged(state, index))

    def _merged(self, state: QueryState, index: Index) -> Ranking:
        expanded = ExpandedQuery.of(state)
        lexical, dense = (state.rankings.get(source, Ranking.empty()) for source in ("lexical", "dense"))
        if self.lexical_weight == 0:
            lexical = Ranking.empty()
        if self.dense_weight == 0 or (self.lexical_for_tags and (expanded.tags or tags_in(state.query.text))):
            dense = Ranking.empty()
        dense = dense.keep(~np.isin(dense.chunks, lexical.chunks))
        of_lexical = self.lexical_weight * np.maximum(lexical.scores.astype(np.float64), 0.0)
        if self.tag_match_boost != 1 and len(lexical):
            tagged = index.prefixes.chunks_with_tag(expanded.ranking_text)[lexical.chunks]
            of_lexical *= np.where(tagged, self.tag_match_boost, 1.0)
        of_dense = self.dense_weight * np.maximum(dense.scores.astype(np.float64), 0.0)
        chunks, scores = np.concatenate([lexical.chunks, dense.chunks]), np.concatenate([of_lexical, of_dense])
        order = np.argsort(-scores, kind="stable")
        return Ranking.ordered(chunks[order], scores[order] / max(1.0, scores.max(initial=0.0)))

    def describe(self) -> str:
        return f"merge by score (lexical x{self.lexical_weight:g}, dense x{self.dense_weight:g})"
