"""Recall of lexical search v3: the documents that hold a term, left for ranking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Interval

from ragbench.base.types import ExpandedQuery, QueryState
from ragbench.search.stages.stage import StateProperty, StateStage

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class RecallBySubstring(StateStage):
    """Keep at most `limit` (10 to 1000) documents that hold the queries or the salient terms as substrings.

    Seed 002, "Candidate recall": first those whose path holds the most terms, then those whose content does. Terms of
    less than 3 characters are ignored, or of less than 2 when they hold CJK characters. Without query expansion the
    query is the only term.
    """

    limit: Annotated[int, Interval(ge=10, le=1000)] = 200

    needs: ClassVar[frozenset[str]] = frozenset({"scan", "facets"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.CANDIDATES})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.V3_RANKING: "they have been ranked already",
        StateProperty.FUSED: "it would come too late to be ranked",
    }

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Set the candidates of a query."""
        expanded = state.expanded or ExpandedQuery(state.query.text)
        terms = dict.fromkeys(text.lower() for text in (*expanded.queries, *expanded.salient_terms))
        allowed = None if state.filters is None else index.passing(state.filters)
        files, by_path = index.scan.recall(terms, self.limit, allowed)
        note = f"{len(files)} candidates hold a term, {by_path} of them in their path"
        return replace(state, candidates=files).with_note(note)

    def returning_all(self, n: int) -> RecallBySubstring:
        """The stage for a search that returns all, at most `n` hits."""
        return replace(self, limit=n)

    def describe(self) -> str:
        return f"recall {self.limit} documents by substring"
