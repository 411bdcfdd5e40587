"""Turn fused scores into confidences between 0 and 1, by a formula or a curve, drop those of low confidence (P10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.options import Natural, Positive, Share, option
from ragbench.search.stages import agreement
from ragbench.search.stages.stage import Filter, Index, QueryState, Ranking, Reorder, Retriever, StateProperty, fused


@option("calibration", "Absolute confidence 1 / (1 + exp(-steepness * (score - threshold))), a sigmoid (source 001).")
@dataclass(frozen=True)
class Calibrate(Reorder):
    """Sigmoid of the fused score: 1 / (1 + exp(-steepness * (score - threshold))), seed 001 "Score Calibration".

    `threshold` is the score that maps to 0.5; `steepness` (above 0) is how fast confidence grows around it. The
    mapping is absolute: it does not depend on the other hits. It is for scores of `lists` retrievers (0: any number):
    if fewer were queried, or only one returned results above the noise, scores are scaled (`agreement.scale_factor`).
    `noise` names the parts of the index that measure the noise, by retriever.
    """

    threshold: float = 0.035  # fused score with confidence 0.5
    steepness: Positive = 150.0  # how fast the confidence grows around the threshold
    lists: Natural = 2  # number of agreeing retrievers that the threshold assumes; scores of fewer are scaled
    noise: Mapping[str, str] = field(default_factory=dict, metadata={"made by": "the pipeline"})

    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.CALIBRATED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.CALIBRATED: "scores have been calibrated already"}

    @property
    def needs(self) -> frozenset[str]:
        """The parts that say which cosines stand out."""
        return agreement.needs(self.noise)

    def among(self, sources: Sequence[Retriever]) -> Calibrate:
        """This stage in a pipeline with these sources."""
        return replace(self, noise=agreement.noise_of_several(sources, self.lists))

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        """Map the scores; the order is kept."""
        return self.calibrate(fused(state), agreement.scale_factor(state, index, self.lists, self.noise))

    def calibrate(self, ranking: Ranking, factor: float = 1.0) -> Ranking:
        """The same hits with confidences instead of scores, which are multiplied by `factor`."""
        exponent = np.clip(-self.steepness * (factor * ranking.scores.astype(np.float64) - self.threshold), -700, 700)
        return Ranking.ordered(ranking.chunks, 1.0 / (1.0 + np.exp(exponent)))

    def describe(self) -> str:
        return f"calibrate (confidence 0.5 at score {self.threshold:g})"


@option(
    "calibration=table",
    "The confidence table of source 001, interpolated linearly: 0.3 at 0.020, for which the formula returns 0.095.",
    x=(0.0, 0.02, 0.03, 0.038, 0.05, 0.056),
    y=(0.0, 0.3, 0.5, 0.7, 0.9, 0.98),
    lists=2,
)
@dataclass(frozen=True)
class CalibrateByCurve(Reorder):
    """Map a fused score by the curve through the points (`x`, `y`), linear between them and constant outside.

    The points are those of seed 001's table of interpretations (`calibration=table`), or those that `ragbench fit
    calibration` fits on the training queries by isotonic regression (Zadrozny and Elkan, KDD 2002). A fused score is
    made of ranks alone, and a query without an answer has a first hit, too, so no curve over such scores can recognise
    it: `calibration=evidence` can. `lists` and `noise` are those of `Calibrate`: the seed's table is for two lists; a
    fitted curve has seen scores of fewer, and takes them as they are (0). `x` increases, `y` lies between 0 and 1 and
    never decreases.
    """

    x: tuple[float, ...]  # fused scores, increasing
    y: tuple[Share, ...]  # their confidences, never decreasing
    lists: Natural = 0  # number of agreeing retrievers that the points assume; scores of fewer are scaled
    noise: Mapping[str, str] = field(default_factory=dict, metadata={"made by": "the pipeline"})

    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.CALIBRATED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.CALIBRATED: "scores have been calibrated already"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.x or len(self.x) != len(self.y):
            raise self.refused(
                "x",
                f"and y must hold the same number of points, at least one, got {len(self.x)} and {len(self.y)}: "
                "let `ragbench fit calibration` fit them",
            )
        if not (np.diff(self.x) > 0).all():
            raise self.refused("x", "must increase from point to point")
        if not (np.diff(self.y) >= 0).all():
            raise self.refused("y", "must never decrease")

    @property
    def needs(self) -> frozenset[str]:
        """The parts that say which cosines stand out."""
        return agreement.needs(self.noise)

    def among(self, sources: Sequence[Retriever]) -> CalibrateByCurve:
        """This stage in a pipeline with these sources."""
        return replace(self, noise=agreement.noise_of_several(sources, self.lists))

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        """Map the scores; the order is kept."""
        ranking = fused(state)
        scores = agreement.scale_factor(state, index, self.lists, self.noise) * ranking.scores.astype(np.float64)
        return Ranking.ordered(ranking.chunks, np.interp(scores, self.x, self.y))

    def describe(self) -> str:
        return f"calibrate by a curve of {len(self.x)} points"


@option("p10", "Drop results below a confidence threshold (source 000 P10).")
@dataclass(frozen=True)
class FilterByConfidence(Filter):
    """Keep hits whose calibrated score is at least `threshold` (0 to 1; 0 keeps all). Seed 000, P10."""

    threshold: Share = 0.3  # minimum confidence of a result

    counted: ClassVar[str] = "after_threshold"
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.CALIBRATED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.DIVERSE: "the scores are no longer confidences"}

    def keep(self, state: QueryState, index: Index) -> NDArray[np.bool_]:
        """The hits with a score of at least the threshold."""
        return fused(state).scores >= self.threshold

    def describe(self) -> str:
        return f"drop results with confidence below {self.threshold:g}"
