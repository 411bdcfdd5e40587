"""Stages of Librarian (seed 004): average of scores, a hit with its neighbours, re-ranking by keywords."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.options import Count, Natural, Share, Weight, option
from ragbench.extras.systems.state import SystemProperty
from ragbench.search.stages.stage import Index, QueryState, Ranking, StateProperty, StateStage, fused, keep_hits


@option("average", "Weighted average of scores instead of reciprocal ranks (source 004, mode hybrid).")
@dataclass(frozen=True)
class AverageScores(StateStage):
    """score(d) = sum over sources of weight * score / sum of weights; a source that lacks a chunk gives it 0.

    Seed 004, "Merge -> Weighted Average" with `semantic_weight` 0.5. `weights` (default 1.0, at least 0) are by source;
    those of the state's sources count, a source of weight 0 is excluded: `{dense: 1.0, lexical: 0.0}` is the semantic
    mode. Scores below 0 count as 0. If the best score of a source exceeds 1, its scores are divided by it, so that
    BM25 scores and cosines compare. The result is between 0 and 1.
    """

    replaces: ClassVar[tuple[str, ...]] = ("fuse",)
    weights: Mapping[str, Weight] = field(default_factory=lambda: {"dense": 0.5, "lexical": 0.5})

    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "the rankings have been fused already"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Set the fused ranking."""
        return replace(state, fused=self.average(state))

    def average(self, state: QueryState) -> Ranking:
        """One ranking of all chunks that any source of positive weight found."""
        weights = {source: self.weights.get(source, 1.0) for source in sorted(state.rankings)}
        weights = {source: weight for source, weight in weights.items() if weight > 0}
        if not weights:
            return Ranking.empty()
        total = sum(weights.values())
        rankings = [state.rankings[source] for source in weights]
        shares = [weight / total * _scaled_scores(state.rankings[source]) for source, weight in weights.items()]
        chunks, places = np.unique(np.concatenate([ranking.chunks for ranking in rankings]), return_inverse=True)
        return Ranking.of(chunks, np.bincount(places, weights=np.concatenate(shares), minlength=len(chunks)))

    def describe(self) -> str:
        return f"average scores ({', '.join(f'{name} x{weight:g}' for name, weight in sorted(self.weights.items()))})"


def _scaled_scores(ranking: Ranking) -> NDArray[np.float64]:
    scores = np.maximum(ranking.scores.astype(np.float64), 0.0)
    return scores / max(1.0, float(scores.max(initial=0.0)))


@option("context", "Return one result per document, with the neighbouring chunks (source 004).")
@dataclass(frozen=True)
class AddNeighbours(StateStage):
    """Keep the best hit of every document and return it with the `neighbours` (at least 0) chunks on either side.

    Seed 004, "Aggregate results", where the neighbours come from the hits; here they come from the document, if the
    filters admit them. A hit that already has a context keeps it.
    """

    neighbours: Natural = 1  # chunks before and after a hit

    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "facets"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({SystemProperty.CONTEXTS})
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


_AROUND = "?!.,;:\"'`()[]{}<>\u201c\u201d\u2018\u2019"


@option(
    "keywords", "Re-rank by query-term frequency and drop results without any query term (source 004, mode rerank)."
)
@dataclass(frozen=True)
class RerankByKeywords(StateStage):
    """Order the first `depth` (at least 1) hits by (1 - `weight`) * score + `weight` * keyword score; drop the others.

    Seed 004, feature 1. The keyword score of a text, 0 to 1: the occurrences of every word of the query of at least
    `min_length` characters, without punctuation around it, also inside words and in any letter case, at most `cap` for
    each, divided by `cap` times the number of these words. Hits with a keyword score below `threshold` (0 to 1) are
    dropped, but not guaranteed ones. The text is that of the hit and of the neighbours returned with it.
    `as_typed` takes words as the seed does: with punctuation around them, short ones counted in the divisor only.
    """

    depth: Count = 50  # number of hits that are ordered
    weight: Share = 0.3  # weight of the keyword score; the previous score has the rest
    threshold: Share = 0.1  # minimum keyword score of a hit
    cap: Count = 5  # maximum number of counted occurrences of a word
    min_length: Count = 2  # minimum characters of a word
    as_typed: bool = False  # keep punctuation around words, and count short words only in the divisor, as in source 004

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({SystemProperty.KEYWORDS})
    forbids: ClassVar[Mapping[str, str]] = {
        SystemProperty.KEYWORDS: "hits have been re-ranked by keywords already",
        StateProperty.PARENTS: "it reads chunks, not their parents",
    }
    in_mode_alone: ClassVar[bool] = True  # of the modes of a request, only `rerank` has it

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Reorder and thin the fused ranking."""
        return state.filtered("after_keywords", self._reranked(state, index))

    def score(self, query: str, text: str) -> float:
        """The keyword score of a text, 0 for a query without words."""
        words = query.lower().split()
        if not self.as_typed:
            words = [bare for word in words if len(bare := word.strip(_AROUND)) >= self.min_length]
        lowered = text.lower()
        matches = sum(min(lowered.count(word), self.cap) for word in words if len(word) >= self.min_length)
        return matches / (len(words) * self.cap) if words else 0.0

    def _reranked(self, state: QueryState, index: Index) -> Ranking:
        ranking = fused(state)
        guaranteed = np.isin(ranking.chunks, list(state.guaranteed))
        ranking = ranking.keep(guaranteed | (np.arange(len(ranking)) < self.depth))
        guaranteed = np.isin(ranking.chunks, list(state.guaranteed))
        texts = (
            "\n\n".join(map(index.chunks.text, state.contexts.get(chunk, (chunk,))))
            for chunk in ranking.chunks.tolist()
        )
        relevance = np.array([self.score(state.query.text, text) for text in texts], dtype=np.float64)
        stays = guaranteed | (relevance >= self.threshold)
        scores = (1 - self.weight) * ranking.scores.astype(np.float64) + self.weight * relevance
        return Ranking.of(ranking.chunks[stays], scores[stays])

    def describe(self) -> str:
        return f"re-rank {self.depth} by keywords (at least {self.threshold:g})"
