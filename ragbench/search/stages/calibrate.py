"""Turn fused scores into confidences between 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.base.bounds import Checked, Natural, Positive
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages import votes
from ragbench.search.stages.stage import Fact, Retriever, fused

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class Calibrate(Checked):
    """Sigmoid of the fused score: 1 / (1 + exp(-steepness * (score - threshold))), seed 001 "Score Calibration".

    `threshold` is the score that maps to 0.5; `steepness` (above 0) is how fast confidence grows around it. The
    mapping is absolute: it does not depend on the other hits. It is for scores of `lists` retrievers (0: any number):
    if fewer were queried, or only one returned results above the noise, scores are scaled (`votes.factor`). `noise`
    names the parts of the index that measure the noise, by retriever.
    """

    threshold: float = 0.035
    steepness: Positive = 150.0
    lists: Natural = 2  # number of agreeing retrievers that the threshold assumes; scores of fewer are scaled
    noise: Mapping[str, str] = field(default_factory=dict, metadata={"made by": "the pipeline"})

    requires: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({Fact.CALIBRATED})
    forbids: ClassVar[Mapping[str, str]] = {Fact.CALIBRATED: "scores have been calibrated already"}

    @property
    def needs(self) -> frozenset[str]:
        """The parts that say which cosines stand out."""
        return votes.needs(self.noise)

    def among(self, sources: Sequence[Retriever]) -> Calibrate:
        """This stage in a pipeline with these sources."""
        return replace(self, noise=votes.noise_of_several(sources, self.lists))

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Map the scores of every state's fused ranking; order is kept."""
        factors = (votes.factor(state, index, self.lists, self.noise) for state in states)
        return [
            replace(state, fused=self.calibrate(fused(state), by)) for state, by in zip(states, factors, strict=True)
        ]

    def calibrate(self, ranking: Ranking, factor: float = 1.0) -> Ranking:
        """The same hits with confidences instead of scores, which are multiplied by `factor`."""
        exponent = np.clip(-self.steepness * (factor * ranking.scores.astype(np.float64) - self.threshold), -700, 700)
        return Ranking.ordered(ranking.chunks, 1.0 / (1.0 + np.exp(exponent)))

    def describe(self) -> str:
        return f"calibrate (half at {self.threshold:g})"
