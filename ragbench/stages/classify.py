"""P3: tell what kind of query it is and weigh the sources accordingly."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from ragbench.errors import ConfigError
from ragbench.stages.stage import NOTHING
from ragbench.types import QueryClass, QueryState

if TYPE_CHECKING:
    from ragbench.index.index import Index

# Seed 001, "Query Type Classification". The first class with a signal wins, in this order; without any, exploratory.
_FACTUAL = (
    re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]"),  # camelCase
    re.compile(r"\b[a-z]+_[a-z_]+\b"),  # snake_case
    re.compile(r"`[^`]+`"),
    re.compile(r"\b[vV]?\d+\.\d+(?:\.\d+)?(?:-\w+)?\b"),  # a version
    re.compile(r"\"[^\"]+\"|\u201c[^\u201d]+\u201d"),  # a quoted phrase
)
_WIKILINK = re.compile(r"\[\[|\]\]")
_PLACES = frozenset({"section", "chapter", "guide", "tutorial", "documentation", "docs", "page", "reference", "manual"})
_SOURCE_OF: Mapping[QueryClass, str] = {"factual": "lexical", "navigational": "graph", "exploratory": "dense"}


@dataclass(frozen=True)
class Classify:
    """Classify the query by its form and multiply the weight of the source that serves such queries best.

    `factual`, `navigational`, `exploratory`: factors (at least 0) for `lexical`, `graph` and `dense`; seeds 000 and
    001, P3, have 1.5, 1.5 and 1.3. `override`: take this class for every query.
    """

    factual: float = 1.5
    navigational: float = 1.5
    exploratory: float = 1.3
    override: QueryClass | None = None

    needs: ClassVar[frozenset[str]] = NOTHING
    requires: ClassVar[frozenset[str]] = NOTHING
    provides: ClassVar[frozenset[str]] = frozenset({"class"})
    forbids: ClassVar[Mapping[str, str]] = {"fused": "the sources' weights would change too late"}

    def __post_init__(self) -> None:
        for name in _SOURCE_OF:
            if not getattr(self, name) >= 0:
                raise ConfigError(f"p3.{name} must be at least 0, got {getattr(self, name)}")

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Set the class of every state and the factor of one source."""
        return [self._classified(state) for state in states]

    def _classified(self, state: QueryState) -> QueryState:
        found: QueryClass = self.override or classify(state.query.text)
        source, factor = _SOURCE_OF[found], float(getattr(self, found))
        noted = replace(state, query_class=found).with_note(f"a {found} query: {source} counts x{factor:g}")
        return noted.with_weight(source, factor)

    def describe(self) -> str:
        """In words."""
        return f"weigh sources for {'a ' + self.override if self.override else 'the kind of'} query"


def classify(text: str) -> QueryClass:
    """The class of a query: factual before navigational before exploratory."""
    if any(signal.search(text) for signal in _FACTUAL):
        return "factual"
    words = set(re.findall(r"\w+", text.lower()))
    if _WIKILINK.search(text) or words & _PLACES:
        return "navigational"
    return "exploratory"
