"""P3: classify the query and weigh the sources accordingly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from ragbench.base.options import Weight, option
from ragbench.base.types import QueryClass
from ragbench.search.stages.signals import names_a_location, names_something_exact
from ragbench.search.stages.stage import Index, QueryState, StateProperty, StateStage

_SOURCE_OF: Mapping[QueryClass, str] = {"factual": "lexical", "navigational": "graph", "exploratory": "dense"}


@option("p3", "Classify the query and weight the retrievers accordingly (sources 000 P3, 001).")
@dataclass(frozen=True)
class Classify(StateStage):
    """Classify the query by its form and multiply the weight of the source that is best for its class.

    The factors are those of seeds 000 and 001, P3. `signals` `more` also takes error codes, flags, calls, dotted names
    and other places.
    """

    factual: Weight = 1.5  # factor of the lexical weight
    navigational: Weight = 1.5  # factor of the graph weight
    exploratory: Weight = 1.3  # factor of the dense weight
    override: QueryClass | None = None  # fixed class: factual, navigational or exploratory
    signals: Literal["more", "seed"] = "more"  # seed: only the signals of sources 000 and 001

    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "the sources' weights would change too late"}
    options: ClassVar[frozenset[str]] = frozenset({"query_class"})

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Set the class of the query and the factor of one source."""
        query_class: QueryClass = self.override or classify(state.query.text, seed=self.signals == "seed")
        source, factor = _SOURCE_OF[query_class], float(getattr(self, query_class))
        noted = replace(state, query_class=query_class).with_note(
            f"query class {query_class}: {source} counts x{factor:g}"
        )
        return noted.with_weight(source, factor)

    def describe(self) -> str:
        return f"weigh sources for {self.override + ' queries' if self.override else 'the kind of query'}"


def classify(text: str, *, seed: bool = False) -> QueryClass:
    """The class of a query: factual if it fits, else navigational if it fits, else exploratory."""
    if names_something_exact(text, seed=seed):
        return "factual"
    return "navigational" if names_a_location(text, seed=seed) else "exploratory"
