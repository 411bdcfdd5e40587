"""The request of a search and its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.config.settings import Settings
from ragbench.evidence.policy import Policy
from ragbench.evidence.statistics import Comparison
from ragbench.extras.fit.tuning.space import Value, Values, changed_values
from ragbench.extras.fit.tuning.spec import TuneSpec
from ragbench.extras.fit.tuning.study import Rules, Trial

if TYPE_CHECKING:
    import pandas as pd

PRESET, TUNED = "preset", "tuned"
"""The names of the two arms that are compared in the end."""


@dataclass(frozen=True)
class Fold:
    """What the search without the topics of this fold chose, and its values on these topics.

    `inner`, `inner_preset`: the means on the other topics. `pairs`: the values of the chosen pipeline and of the preset
    by qid of the fold, by documents; `passages`: by passages as they are returned.
    """

    number: int
    values: Values
    inner: float
    inner_preset: float
    pairs: Mapping[str, tuple[float, float]]
    passages: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search; all values are of `measure`, the first objective that is a measure.

    `held_out_topics`: whether there are test topics, which the search has not seen. Without them the folds give the
    verdict, and `samples` has the times of the preset and the winner by `PRESET` and `TUNED`.
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
        """Whether the search found nothing better than the configured values."""
        return self.winner.number == self.preset.number

    @property
    def changes(self) -> dict[str, Value]:
        """The winner's values that differ from those of its start, and the start unless it is the preset."""
        if self.unchanged:
            return {}
        return changed_values(self.rules.parameters, self.base, self.winner.values)

    @property
    def objective_index(self) -> int:
        """The place of `measure` among the objectives."""
        return next(n for n, objective in enumerate(self.rules.objectives) if objective.measure == self.measure)

    @property
    def inner(self) -> float:
        """The mean over folds of the value that the chosen parameters have on the topics they were chosen on."""
        return sum(fold.inner for fold in self.folds) / len(self.folds)

    @property
    def held_out(self) -> float:
        """The mean over all training topics, each with the parameters chosen without it."""
        pairs = list(self.pairs().values())
        return sum(tuned for tuned, _ in pairs) / len(pairs)

    @property
    def optimism(self) -> float:
        """Inner minus held-out: by how much the search overestimates its gain."""
        return self.inner - self.held_out

    def held_out_gain(self) -> Comparison:
        """The parameters against the preset, each training topic with the parameters chosen without it."""
        tuned, preset = zip(*self.pairs().values(), strict=True)
        return Policy.of(self.base.config).compare([tuned], [preset])[0]

    def pairs(self, *, passages: bool = False) -> dict[str, tuple[float, float]]:
        """The value of the parameters chosen without a topic and that of the preset, by qid: means over repeats."""
        pairs: dict[str, list[tuple[float, float]]] = {}
        for fold in self.folds:
            for qid, pair in sorted((fold.passages if passages else fold.pairs).items()):
                pairs.setdefault(qid, []).append(pair)
        return {
            qid: (
                sum(tuned for tuned, _ in topic_pairs) / len(topic_pairs),
                sum(preset for _, preset in topic_pairs) / len(topic_pairs),
            )
            for qid, topic_pairs in pairs.items()
        }
