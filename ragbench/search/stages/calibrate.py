"""Turn fused scores into confidences between 0 and 1, by a formula or a curve, drop those of low confidence (P10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Natural, Positive, Share
from ragbench.base.errors import ConfigError
from ragbench.base.options import option
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages import agreement
from ragbench.search.stages.stage import Filter, Reorder, Retriever, StateProperty, fused

if TYPE_CHECKING:
    from ragbench.index.index import Index


@option("calibration", "Absolute confidence 1 / (1 + exp(-steepness * (score - threshold))), a sigmoid (source 001).")
@dataclass(frozen=True)
class Calibrate(Reorder):
    """Sigmoid of the fused score: 1 / (1 + exp(-steepness * (score - threshold))), seed 001 "Score Calibration".

    `threshold` is the score that maps to 0.5; `steepness` (above 0) is how fast confidence grows around it. The
    mapping is absolute: it does not depend on the other hits. It is for scores of `lists` retrievers (0: any number):
    if fewer were queried, or only one returned results above the noise, scores are scaled (`agreement.scale_factor`).
    `noise` names the parts of the index that measure the noise, by retriever.
    """

    threshold: float = 0.035
    steepness: Positive = 150.0
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
    it. `best_of` names a source whose best score can; the curve (`best_x`, `best_y`) maps it to the probability that
    there is an answer, which multiplies the scores of all hits. `lists` and `noise` are those of `Calibrate`: the
    seed's table is for two lists; a fitted curve has seen scores of fewer, and takes them as they are (0). `x` and
    `best_x` increase, `y` and `best_y` lie between 0 and 1 and never decrease.
    """

    x: tuple[float, ...]
    y: tuple[Share, ...]
    best_of: str | None = None
    best_x: tuple[float, ...] = ()
    best_y: tuple[Share, ...] = ()
    lists: Natural = 0  # number of agreeing retrievers that the points assume; scores of fewer are scaled
    noise: Mapping[str, str] = field(default_factory=dict, metadata={"made by": "the pipeline"})

    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.CALIBRATED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.CALIBRATED: "scores have been calibrated already"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_curve("x", "y")
        if self.best_of is not None:
            self._check_curve("best_x", "best_y")

    @property
    def needs(self) -> frozenset[str]:
        """The parts that say which cosines stand out."""
        return agreement.needs(self.noise)

    def among(self, sources: Sequence[Retriever]) -> CalibrateByCurve:
        """This stage in a pipeline with these sources."""
        return replace(self, noise=agreement.noise_of_several(sources, self.lists))

    def _check_curve(self, x_name: str, y_name: str) -> None:
        x, y = getattr(self, x_name), getattr(self, y_name)
        if not x or len(x) != len(y):
            raise self.refused(
                x_name,
                f"and {y_name} must hold the same number of points, at least one, got {len(x)} and {len(y)}: "
                "let `ragbench fit calibration` fit them",
            )
        if not (np.diff(x) > 0).all():
            raise self.refused(x_name, "must increase from point to point")
        if not (np.diff(y) >= 0).all():
            raise self.refused(y_name, "must never decrease")

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        """Map the scores; the order is kept."""
        ranking = fused(state)
        scores = agreement.scale_factor(state, index, self.lists, self.noise) * ranking.scores.astype(np.float64)
        return Ranking.ordered(ranking.chunks, np.interp(scores, self.x, self.y) * self._answerable(state))

    def _answerable(self, state: QueryState) -> float:
        """The probability that the query has an answer, 1 without `best_of`."""
        if self.best_of is None:
            return 1.0
        if self.best_of not in state.rankings:
            raise ConfigError(
                f"calibration.best_of names the source '{self.best_of}', which the pipeline does not search: "
                f"name one of {', '.join(sorted(state.rankings))} or null"
            )
        scores = state.rankings[self.best_of].scores
        return float(np.interp(scores[0], self.best_x, self.best_y)) if len(scores) else self.best_y[0]

    def describe(self) -> str:
        evidence = f", counting the best of {self.best_of}" if self.best_of else ""
        return f"calibrate by a curve of {len(self.x)} points{evidence}"


@option("p10", "Drop results below a confidence threshold (source 000 P10).")
@dataclass(frozen=True)
class FilterByConfidence(Filter):
    """Keep hits whose calibrated score is at least `threshold` (0 to 1; 0 keeps all). Seed 000, P10."""

    threshold: Share = 0.3

    counted: ClassVar[str] = "after_threshold"
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.CALIBRATED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.DIVERSE: "the scores are no longer confidences"}

    def keep(self, state: QueryState, index: Index) -> NDArray[np.bool_]:
        """The hits with a score of at least the threshold."""
        return fused(state).scores >= self.threshold

    def describe(self) -> str:
        return f"drop results with confidence below {self.threshold:g}"
