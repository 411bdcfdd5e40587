"""P8, third stage: drop hits that say the same in other words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from ragbench.base.bounds import Checked, Cosine
from ragbench.base.types import QueryState
from ragbench.search.stages.stage import Fact, first_of_similar, fused, keep_hits

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class DropParaphrases(Checked):
    """Drop a hit whose vector has a cosine of `threshold` (-1 to 1) or more with that of a better hit.

    Seed 000, P8 stage 3. The vectors are those of the index: no passage is embedded at query time.
    """

    threshold: Cosine = 0.85

    needs: ClassVar[frozenset[str]] = frozenset({"dense"})
    requires: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({Fact.SEMANTIC_DEDUP})
    forbids: ClassVar[Mapping[str, str]] = {
        Fact.DIVERSE: "P11 replaces semantic deduplication: turn one of them off (p8.semantic=null or p11=off)"
    }

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Filter every state's fused ranking and count the merged clusters."""
        return [self._filtered(state, index) for state in states]

    def _filtered(self, state: QueryState, index: Index) -> QueryState:
        ranking = fused(state)
        left = keep_hits(state, first_of_similar(index.dense.similarities(ranking.chunks), self.threshold))
        merged = replace(state, clusters_merged=state.clusters_merged + len(ranking) - len(left))
        return merged.filtered("after_dedup", left)

    def describe(self) -> str:
        return f"drop paraphrases (cosine {self.threshold:g})"
