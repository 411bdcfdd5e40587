"""Librarian's re-ranking: of what means the same, what says it in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.base.bounds import Count, Share
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.stage import StateProperty, StateStage, fused

if TYPE_CHECKING:
    from ragbench.index.index import Index


_AROUND = "?!.,;:\"'`()[]{}<>\u201c\u201d\u2018\u2019"


@dataclass(frozen=True)
class RerankByKeywords(StateStage):
    """Order the first `depth` (at least 1) hits by (1 - `weight`) * score + `weight` * keyword score; drop the others.

    Seed 004, feature 1. The keyword score of a text, 0 to 1: the occurrences of every word of the query of at least
    `min_length` characters, without punctuation around it, also inside words and in any letter case, at most `cap` for
    each, divided by `cap` times the number of these words. Hits with a keyword score below `threshold` (0 to 1) are
    dropped, but not guaranteed ones. The text is that of the hit and of the neighbours returned with it.
    `as_typed` takes words as the seed does: with punctuation around them, short ones counted in the divisor only.
    """

    depth: Count = 50
    weight: Share = 0.3  # weight of the keyword score; the previous score has the rest
    threshold: Share = 0.1
    cap: Count = 5  # maximum number of counted occurrences of a word
    min_length: Count = 2
    as_typed: bool = False  # keep punctuation around words, and count short words only in the divisor, as in source 004

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.KEYWORDS})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.KEYWORDS: "hits have been re-ranked by keywords already",
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
