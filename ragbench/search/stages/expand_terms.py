"""P1: add the collection's own words for what the query means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ragbench.base.bounds import Checked, Cosine, Count
from ragbench.base.types import QueryState
from ragbench.search.stages.stage import NOTHING, Fact

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbench.index.index import Index
    from ragbench.index.vocabulary import Vocabulary


@dataclass(frozen=True)
class ExpandTerms(Checked):
    """Append to the text for `sources` the `top_k` (at least 1) vocabulary terms nearest to the query.

    Terms need a cosine of at least `threshold` (-1 to 1) and must not be in the query. Seeds 000 (P1) and 001 have 3
    and 0.5, on the semantic channel. One matrix product per query.
    """

    top_k: Count = 3
    threshold: Cosine = 0.5
    sources: tuple[str, ...] = ("dense",)

    needs: ClassVar[frozenset[str]] = frozenset({"encoder", "vocabulary"})
    requires: ClassVar[frozenset[str]] = NOTHING
    provides: ClassVar[frozenset[str]] = frozenset({Fact.EXPANSION})
    forbids: ClassVar[Mapping[str, str]] = {Fact.RANKINGS: "a source has been searched already"}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Expand the texts of every state."""
        vectors = index.encoder.encode_queries([state.query.text for state in states])
        return [
            self._expanded(state, self.nearest_terms(state.query.text, vector, index.vocabulary))
            for state, vector in zip(states, vectors, strict=True)
        ]

    def nearest_terms(self, text: str, vector: NDArray[np.float32], vocabulary: Vocabulary) -> list[tuple[str, float]]:
        """The terms to add to a query of this text and unit vector, each with its cosine."""
        present = set(re.findall(r"[\w-]+", text.lower()))
        nearest = vocabulary.nearest(vector, self.top_k)
        return [(term, cosine) for term, cosine in nearest if cosine >= self.threshold and term not in present]

    def _expanded(self, state: QueryState, added: Sequence[tuple[str, float]]) -> QueryState:
        if not added:
            return state
        for source in self.sources:
            state = state.with_text(source, " ".join([state.text_for(source), *(term for term, _ in added)]))
        return state.with_note("expanded with " + ", ".join(f"{term} ({cosine:.2f})" for term, cosine in added))

    def describe(self) -> str:
        return f"expand by {self.top_k} near terms"
