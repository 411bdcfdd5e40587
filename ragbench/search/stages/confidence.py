"""P10: drop hits of low confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ragbench.base.bounds import Checked, Share
from ragbench.base.types import QueryState
from ragbench.search.stages.stage import NOTHING, Fact, fused, keep_hits

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class FilterByConfidence(Checked):
    """Keep hits whose calibrated score is at least `threshold` (0 to 1; 0 keeps all). Seed 000, P10."""

    threshold: Share = 0.3

    needs: ClassVar[frozenset[str]] = NOTHING
    requires: ClassVar[frozenset[str]] = frozenset({Fact.CALIBRATED})
    provides: ClassVar[frozenset[str]] = NOTHING
    forbids: ClassVar[Mapping[str, str]] = {Fact.DIVERSE: "the scores are no longer confidences"}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Filter every state's fused ranking."""
        return [
            state.filtered("after_threshold", keep_hits(state, fused(state).scores >= self.threshold))
            for state in states
        ]

    def describe(self) -> str:
        return f"drop confidences below {self.threshold:g}"
