"""P12: drop near-duplicates by the overlap of their n-grams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from annotated_types import Interval

from ragbench.base.bounds import Checked
from ragbench.base.types import QueryState
from ragbench.search.stages.stage import NOTHING, Fact, first_of_similar, fused, keep_hits

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class DropNearCopies(Checked):
    """Drop a hit whose trigrams and those of a better hit have a Jaccard coefficient of `threshold` or more.

    `threshold` is above 0 and at most 1. `unit`: `character` takes trigrams of the lower-cased text without spaces
    (seed 000, P12), `word` those of its words (P8 stage 2). The trigrams come from the index; no text is read here.
    """

    threshold: Annotated[float, Interval(gt=0, le=1)] = 0.7
    unit: Literal["character", "word"] = "character"  # or word (seed 000 P8, stage 2)

    needs: ClassVar[frozenset[str]] = frozenset({"trigrams"})
    requires: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    provides: ClassVar[frozenset[str]] = NOTHING
    forbids: ClassVar[Mapping[str, str]] = {
        Fact.DIVERSE: "the cheap n-gram filter goes before the semantic one",
        Fact.SEMANTIC_DEDUP: "the cheap n-gram filter goes before the semantic one",
    }

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Filter every state's fused ranking."""
        return [self._filtered(state, index) for state in states]

    def _filtered(self, state: QueryState, index: Index) -> QueryState:
        overlap = index.trigrams.jaccard(fused(state).chunks, self.unit)
        return state.filtered("after_ngram_dedup", keep_hits(state, first_of_similar(overlap, self.threshold)))

    def describe(self) -> str:
        return f"drop near-duplicates ({self.unit} trigrams, {self.threshold:g})"
