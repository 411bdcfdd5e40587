"""Whether derived topics lead to the same conclusions as human-written ones.

The same arms are measured on both sets. Three questions, by documents: do both sets order the arms alike (Kendall's
tau-b of the means), do they find the same differences from the first arm, and if a difference of two arms is
significant on both, does it have the same sign (active agreement; Moffat, Scholer and Thomas, ADCS 2012)? Intervals
resample the topics of each set independently. Human-written topics do not fully agree with themselves: `ceiling` is the
mean tau of two samples of these, of the sizes of the two sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.base import minimums
from ragbench.base.errors import ResultsError
from ragbench.base.formatting import with_interval
from ragbench.evaluation.measures import DOCUMENT
from ragbench.evidence.arms import Arms
from ragbench.evidence.max_t import resamples
from ragbench.evidence.statistics import TIE, Contrast

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
_DRAWS = 4_000


@dataclass(frozen=True)
class Interval:
    """An estimate between two bounds."""

    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """Such as `0.81 [0.62, 0.95]`."""
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Validity:
    """How far two sets of topics agree on the same arms; `topics` are the sizes, of the human-written set first.

    `same_sign`: the share of pairs of arms in which both find the same one better. `correlation` (Pearson) and `bias`
    (mean difference, other minus human-written) compare the effects against the first arm. `sure_same`,
    `sure_other`, `sure_one`, `sure_none`: pairs whose difference is significant on both sets with the same sign,
    on both with opposite signs, on one set, on none. `effects`: a row for every arm but the first: arm, effect, low,
    high, quality, other_effect, other_low, other_high, other_quality, difference, difference_low, difference_high.
    """

    topics: tuple[int, int]
    measure: str
    confidence: float
    base: str
    tau: Interval
    ceiling: Interval
    same_sign: Interval
    correlation: Interval
    bias: Interval
    sure_same: int
    sure_other: int
    sure_one: int
    sure_none: int
    effects: pd.DataFrame

    @property
    def sentences(self) -> list[str]:
        """The agreement in words."""
        both = self.sure_same + self.sure_other
        pairs = both + self.sure_one + self.sure_none
        summary = f"both sets find a significant difference in {both} of {pairs} pairs"
        return [
            f"Order of {len(self.effects) + 1} arms: Kendall's tau {self.tau.text}; two samples of the human-written "
            f"queries reach {self.ceiling.text}.",
            f"Pairs of arms: the same one is better in {self.same_sign.value:.0%} "
            f"[{self.same_sign.low:.0%}, {self.same_sign.high:.0%}]; {summary}, contradict each other in "
            f"{self.sure_other} of these, and only one set finds one in {self.sure_one}.",
            f"Effects against {self.base}: correlation {self.correlation.text}; the other topics find "
            f"{with_interval(self.bias.value, self.bias.low, self.bias.high)} more on average.",
        ]


def validate(human: Arms, model_arms: Arms) -> Validity:
    """Compare the conclusions of two sets of topics about the arms they share, by the policy of the human-written set.

    Raises ResultsError for fewer than `minimums.SHARED_ARMS` shared arms.
    """
    names = [arm for arm in human.arms if arm in model_arms.arms]
    if len(names) < minimums.SHARED_ARMS:
        raise ResultsError(
            f"the two runs share {len(names)} arms by name, and {minimums.SHARED_ARMS} are needed: "
            "run the same arms on both topics"
        )
    sides = [
        Arms({name: replace(arms.arms[name], levels=_documents(arms, name)) for name in names}, human.policy)
        for arms in (human, model_arms)
    ]
    values = [_matrix(side) for side in sides]
    seed, confidence = human.policy.seed, human.policy.statistics.confidence
    means = [matrix.mean(axis=1) for matrix in values]
    first, second = (_resampled_means(matrix, seed + number) for number, matrix in enumerate(values))
    resampled = _resampled_means(values[0], seed + 2, values[1].shape[1])

    def interval(value: float, draws: Floats) -> Interval:
        tail = 50 * (1 - confidence)
        low, high = np.nanpercentile(draws, [tail, 100 - tail])
        return Interval(float(value), float(low), float(high))

    ceiling = _tau(first, resampled)
    effects = [means_of_set[1:] - means_of_set[0] for means_of_set in means]
    drawn = [means_of_set[1:] - means_of_set[0] for means_of_set in (first, second)]
    states = [_sure(side) for side in sides]
    both = (states[0] != 0) & (states[1] != 0)
    gap = drawn[1] - drawn[0]
    return Validity(
        (values[0].shape[1], values[1].shape[1]),
        human.policy.measure,
        confidence,
        names[0],
        interval(float(_tau(means[0][:, None], means[1][:, None])[0]), _tau(first, second)),
        interval(float(np.nanmean(ceiling)), ceiling),
        interval(float(_same(means[0][:, None], means[1][:, None])[0]), _same(first, second)),
        interval(float(_correlation(effects[0][:, None], effects[1][:, None])[0]), _correlation(*drawn)),
        interval(float((effects[1] - effects[0]).mean()), gap.mean(axis=0)),
        int((both & (states[0] == states[1])).sum()),
        int((both & (states[0] != states[1])).sum()),
        int(((states[0] != 0) ^ (states[1] != 0)).sum()),
        int(((states[0] == 0) & (states[1] == 0)).sum()),
        _table(sides, effects[1] - effects[0], gap, confidence),
    )


def _documents(arms: Arms, name: str) -> dict[str, dict[str, float]]:
    return {DOCUMENT: dict(arms.arms[name].levels.get(DOCUMENT, {}))}


def _matrix(arms: Arms) -> Floats:
    values = arms.matrix(DOCUMENT)
    return values[:, ~np.isnan(values).any(axis=0)]


def _resampled_means(values: Floats, seed: int, size: int | None = None) -> Floats:
    """Means of every arm over samples of the topics, (arms, draws), of `size` topics each (default: as many)."""
    n = values.shape[1]
    if size is None:
        blocks = [values @ counts / n for counts in resamples(n, len(values), _DRAWS, seed)]
        return np.concatenate(blocks, axis=1)
    generator = np.random.default_rng([seed, 0])
    counts = generator.multinomial(size, np.full(n, 1 / n), size=_DRAWS).T
    return np.asarray(values @ counts / size)


def _signs(means: Floats) -> Floats:
    """The sign of the difference of every pair of arms in every draw, (pairs, draws); 0 for a tie."""
    pairs = np.array(list(combinations(range(len(means)), 2)))
    gap = means[pairs[:, 0]] - means[pairs[:, 1]]
    return np.asarray(np.where(np.abs(gap) <= TIE, 0.0, np.sign(gap)))


def _tau(one: Floats, synthetic: Floats) -> Floats:
    """Kendall's tau-b of every draw; NaN where all values of one side are ties."""
    first, second = _signs(one), _signs(synthetic)
    ranked = np.sqrt((first != 0).sum(axis=0) * (second != 0).sum(axis=0))
    with np.errstate(invalid="ignore"):
        return np.asarray((first * second).sum(axis=0) / ranked)


def _same(one: Floats, second: Floats) -> Floats:
    return np.asarray((_signs(one) == _signs(second)).mean(axis=0))


def _correlation(one: Floats, synthetic: Floats) -> Floats:
    """Pearson's correlation over the arms for every draw."""
    first, second = one - one.mean(axis=0), synthetic - synthetic.mean(axis=0)
    with np.errstate(invalid="ignore"):
        return np.asarray((first * second).sum(axis=0) / np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0)))


def _sure(arms: Arms) -> NDArray[np.int64]:
    """For every pair of arms 1 if the first is significantly better, -1 if it is worse, else 0; one family."""
    judged_levels = arms.levels_of([Contrast.of(*pair) for pair in combinations(arms.arms, 2)])
    return np.array([int(level[DOCUMENT].better) - int(level[DOCUMENT].worse) for level in judged_levels])


def _table(sides: list[Arms], difference: Floats, drawn: Floats, confidence: float) -> pd.DataFrame:
    import pandas as pd

    tail = 50 * (1 - confidence)
    low, high = np.percentile(drawn, [tail, 100 - tail], axis=1)
    names = list(sides[0].arms)[1:]
    rows: list[list[object]] = [[name] for name in names]
    for side in sides:
        effect = side.policy.statistics.smallest_effect
        for row, levels in zip(
            rows, side.levels_of([Contrast.of(name, next(iter(side.arms))) for name in names]), strict=True
        ):
            comparison = levels[DOCUMENT].comparison
            row += [comparison.difference, comparison.ci_low, comparison.ci_high, levels[DOCUMENT].quality(effect)]
    for number, row in enumerate(rows):
        row += [float(difference[number]), float(low[number]), float(high[number])]
    columns = ["arm", "effect", "low", "high", "quality", "other_effect", "other_low", "other_high", "other_quality"]
    return pd.DataFrame(rows, columns=[*columns, "difference", "difference_low", "difference_high"])
