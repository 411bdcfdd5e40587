"""What only stages of the seeds 002 and 004 do to a state: properties, and the query that a model has rewritten."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ragbench.base.rankings import QueryState


class SystemProperty(StrEnum):
    """What stages of the systems provide or exclude, next to `StateProperty`."""

    EXPANDED = "expanded"
    """A language model has rewritten the query."""
    CANDIDATES = "candidates"
    """The notes that lexical search v3 ranks are known."""
    V3_RANKING = "v3_ranking"
    """Lexical search v3 has ranked its candidates."""
    FOLDER_BOOST = "folder_boost"
    """Folders with many hits were raised, before fusion."""
    GRAPH_BOOST = "graph_boost"
    """Linked notes were raised, before fusion."""
    NORMALISED = "normalised"
    """Scores of the sources lie on one scale."""
    KEYWORDS = "keywords"
    """Librarian's keyword scores are part of the scores."""
    CONTEXTS = "contexts"
    """Neighbouring text was added to what is returned."""


@dataclass(frozen=True, slots=True)
class ExpandedQuery:
    """A query as lexical search v3 sees it (seed 002, "Query expansion").

    `queries` are the original and the other phrasings, which widen what is recalled; `salient_terms` come from the
    original alone and decide the order.
    """

    original_query: str
    salient_terms: tuple[str, ...] = ()
    expanded_queries: tuple[str, ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """The original, then the other phrasings."""
        return (self.original_query, *self.expanded_queries)

    @property
    def tags(self) -> tuple[str, ...]:
        """The salient terms that begin with `#`."""
        return tuple(term for term in self.salient_terms if term.startswith("#"))

    @property
    def ranking_text(self) -> str:
        """The text to rank by: the salient terms, or the original when there are none."""
        return " ".join(self.salient_terms) or self.original_query

    @staticmethod
    def of(state: QueryState) -> ExpandedQuery:
        """The query of a state, as it is where no stage has expanded it."""
        return state.fact(ExpandedQuery) or ExpandedQuery(state.query.text)


@dataclass(frozen=True, slots=True)
class RecalledNotes:
    """The documents, by row, that recall left to rank."""

    documents: tuple[int, ...]
