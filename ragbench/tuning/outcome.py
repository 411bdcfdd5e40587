"""What a search was asked for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.comparison.statistics import Comparison, compare
from ragbench.configuration import Settings, TuneSpec
from ragbench.tuning.space import Value, Values, changed
from ragbench.tuning.study import Rules, Trial

if TYPE_CHECKING:
    import pandas as pd

PRESET, TUNED = "preset", "tuned"
"""The arms that are compared in the end."""


@dataclass(frozen=True)
class Fold:
    """What the search without these topics chose: `pairs` has by held-out qid the value of that and of the preset.

    `passages` has the same by passages as they are returned.
    """

    number: int
    values: Values
    inner: float
    inner_preset: float
    pairs: Mapping[str, tuple[float, float]]
    passages: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search; `measure` is the first objective that is one, all else refers to it.

    `held_out_topics`: test topics exist, which the search has not seen. Without them the folds judge, and `samples` has
    the times of the preset and the winner by `PRESET` and `TUNED`.
    """

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
    held_out_topics: bool = True
    repeats: int = 1
    samples: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def unchanged(self) -> bool:
        """Whether nothing was found that is better than the configured values."""
        return self.winner.number == self.preset.number

    @property
    def changes(self) -> dict[str, Value]:
        """The winner's values that are not those of its start, and the start where it is not the preset."""
        if self.unchanged:
            return {}
        return changed(self.rules.parameters, self.base, self.winner.values)

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
        pairs = list(self.pairs().values())
        return sum(tuned for tuned, _ in pairs) / len(pairs)

    @property
    def optimism(self) -> float:
        """Train minus held-out: what a search promises too much."""
        return self.inner - self.held_out

    def held_out_gain(self) -> Comparison:
        """The chosen values against the preset, every training topic while it was held out."""
        tuned, preset = zip(*self.pairs().values(), strict=True)
        spec = self.base.statistics
        seed = int(self.base.config["seed"])
        return compare(tuned, preset, seed=seed, draws=spec.draws, confidence=spec.confidence)

    def pairs(self, *, passages: bool = False) -> dict[str, tuple[float, float]]:
        """By topic, the chosen values and the preset while it was held out: the mean over repeats."""
        found: dict[str, list[tuple[float, float]]] = {}
        for fold in self.folds:
            for qid, pair in sorted((fold.passages if passages else fold.pairs).items()):
                found.setdefault(qid, []).append(pair)
        return {
            qid: (sum(tuned for tuned, _ in each) / len(each), sum(preset for _, preset in each) / len(each))
            for qid, each in found.items()
        }
