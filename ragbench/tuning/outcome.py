"""What a search was asked for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen

from ragbench.bounds import Checked, Count, Holds, Positive, one_of
from ragbench.comparison.statistics import Comparison, compare
from ragbench.configuration import Settings
from ragbench.tuning import study
from ragbench.tuning.space import Value, Values, value_of
from ragbench.tuning.study import Rules, Trial


@dataclass(frozen=True)
class TuneSpec(Checked):
    """The `tune` node of the configuration, without the space."""

    trials: Count = 200
    objective: Annotated[tuple[str, ...], MinLen(1)] = ("ndcg_at_10",)
    p95_ms: Positive | None = None
    folds: Annotated[int, Holds(lambda folds: folds == 0 or folds > 1, "must be 0 or at least 2")] = 5
    fold_trials: Count | None = None
    seed: int = 13
    sampler: Annotated[str, one_of(*study.SAMPLERS)] | None = None
    processes: Count = 1
    candidates: Count = 8
    storage: str | None = None
    memory_mb: Count = 512


@dataclass(frozen=True)
class Fold:
    """What the search without these topics chose: `pairs` has by held-out qid the value of that and of the preset."""

    number: int
    values: Values
    inner: float
    inner_preset: float
    pairs: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search; `measure` is the first objective that is one, all else refers to it."""

    folder: Path
    base: Settings
    spec: TuneSpec
    rules: Rules
    measure: str
    topics: int
    preset: Trial
    winner: Trial
    trials: Mapping[str, Sequence[Trial]]
    front: Sequence[Trial]
    timed: Mapping[int, Mapping[str, float]]
    folds: Sequence[Fold]
    importances: Mapping[str, Mapping[str, float]]

    @property
    def unchanged(self) -> bool:
        """Whether nothing was found that is better than the configured values."""
        return self.winner.number == self.preset.number

    @property
    def changes(self) -> dict[str, Value]:
        """The winner's values that are not the configured ones."""
        if self.unchanged:
            return {}
        return {key: value for key, value in self.winner.values.items() if value != value_of(self.base, key)}

    @property
    def place(self) -> int:
        """Which of the objectives `measure` is."""
        return next(n for n, each in enumerate(self.rules.objectives) if each.measure == self.measure)

    @property
    def inner(self) -> float:
        """The mean over folds of what the chosen values reach on the topics they were chosen on."""
        return sum(fold.inner for fold in self.folds) / len(self.folds)

    @property
    def held_out(self) -> float:
        """The mean of what values chosen elsewhere reach, over all training topics."""
        pairs = self._pairs()
        return sum(tuned for tuned, _ in pairs) / len(pairs)

    @property
    def optimism(self) -> float:
        """Train minus held-out: what a search promises too much."""
        return self.inner - self.held_out

    def held_out_gain(self) -> Comparison:
        """The chosen values against the preset, every training topic while it was held out."""
        tuned, preset = zip(*self._pairs(), strict=True)
        spec = self.base.statistics
        seed = int(self.base.config["seed"])
        return compare(tuned, preset, seed=seed, draws=spec.draws, confidence=spec.confidence)

    def _pairs(self) -> list[tuple[float, float]]:
        return [pair for fold in self.folds for _, pair in sorted(fold.pairs.items())]
