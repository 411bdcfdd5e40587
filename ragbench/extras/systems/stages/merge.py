"""Merge by scores, as lexical search v3 does with its semantic hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.base.bounds import Factor, Weight
from ragbench.base.types import ExpandedQuery, QueryState, Ranking
from ragbench.extras.systems.parts.names import tags_in
from ragbench.search.stages.stage import StateProperty, StateStage

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class MergeScores(StateStage):
    """One ranking of the hits of `lexical` and `dense`; a chunk that both found keeps its lexical score alone.

    Seed 002, "Semantic Mode". Scores, at least 0, are multiplied by the source's weight (at least 0; at 0 the source is
    omitted), and those of lexical hits also by `tag_match_boost` (at least 1) if a tag of the document begins with a
    term of the query. If the highest exceeds 1, all are divided by it. Equal scores stay in the order of their source,
    lexical first. With `lexical_for_tags` a query with a #tag gets lexical hits only. Other sources are ignored.
    """

    lexical_weight: Weight = 1.0
    dense_weight: Weight = 1.0
    tag_match_boost: Factor = 1.1
    lexical_for_tags: bool = True

    needs: ClassVar[frozenset[str]] = frozenset({"prefixes"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "the rankings have been fused already"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Set the fused ranking."""
        return replace(state, fused=self._merged(state, index))

    def _merged(self, state: QueryState, index: Index) -> Ranking:
        expanded = state.expanded or ExpandedQuery(state.query.text)
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
