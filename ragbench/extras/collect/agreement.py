"""Agreement of two judges: Krippendorff's alpha and Cohen's kappa over the pairs that both have graded.

Confidence intervals for the share of equal grades and for the quadratic kappa.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragbench.base.errors import BenchmarkError
from ragbench.benchmark.benchmark import Qrels


@dataclass(frozen=True)
class Disagreement:
    """A pair with two grades; `target` is a docno or section id."""

    qid: str
    target: str
    first: int
    second: int


@dataclass(frozen=True)
class Agreement:
    """Agreement of two judges over `n_pairs` common pairs of `n_topics` topics.

    `alpha_ordinal` is Krippendorff's alpha for ordered grades (Krippendorff, Content Analysis, 4th ed., 2019, ch. 12);
    1 is perfect, 0 is chance. `kappa` is Cohen's (1960), `kappa_quadratic` weighs a disagreement by its squared
    distance (Cohen 1968). `same` is the share of equal grades. All three coefficients are NaN when only one grade
    occurs, where they are undefined. `counts[i][j]` is how often the first judge gave `grades[i]` and the second
    `grades[j]`.
    """

    n_pairs: int
    n_topics: int
    same: float
    alpha_ordinal: float
    kappa: float
    kappa_quadratic: float
    grades: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]
    disagreements: tuple[Disagreement, ...]


def agreement(first: Qrels, second: Qrels) -> Agreement:
    """Compare two judges' grades; disagreements are sorted, the widest first. BenchmarkError without a common pair."""
    pairs = [
        (qid, target, first[qid][target], second[qid][target])
        for qid in sorted(first)
        if qid in second
        for target in sorted(first[qid])
        if target in second[qid]
    ]
    if not pairs:
        raise BenchmarkError("the two sets of judgments have no pair in common: let both judges grade the same pairs")
    ours, theirs = [pair[2] for pair in pairs], [pair[3] for pair in pairs]
    grades = tuple(sorted({*ours, *theirs}))
    apart = [Disagreement(*pair) for pair in pairs if pair[2] != pair[3]]
    alpha, kappa, quadratic = _coefficients(ours, theirs, grades)
    return Agreement(
        n_pairs=len(pairs),
        n_topics=len({pair[0] for pair in pairs}),
        same=1 - len(apart) / len(pairs),
        alpha_ordinal=alpha,
        kappa=kappa,
        kappa_quadratic=quadratic,
        grades=grades,
        counts=tuple(
            tuple(sum(a == x and b == y for a, b in zip(ours, theirs, strict=True)) for y in grades) for x in grades
        ),
        disagreements=tuple(sorted(apart, key=lambda d: (-abs(d.first - d.second), d.qid, d.target))),
    )


def _coefficients(ours: Sequence[int], theirs: Sequence[int], grades: Sequence[int]) -> tuple[float, float, float]:
    if len(grades) < 2:
        return math.nan, math.nan, math.nan
    import krippendorff
    from sklearn.metrics import cohen_kappa_score

    alpha = krippendorff.alpha(
        reliability_data=[list(ours), list(theirs)], value_domain=list(grades), level_of_measurement="ordinal"
    )
    kappa = cohen_kappa_score(ours, theirs)
    # Quadratic weights use the place in the list of labels, so the list must also have the grades that nobody gave.
    every = list(range(min(grades), max(grades) + 1))
    quadratic = cohen_kappa_score(ours, theirs, labels=every, weights="quadratic")
    return float(alpha), float(kappa), float(quadratic)


_DRAWS = 2_000


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share (JASA 22, 1927)."""
    from scipy.stats import binomtest

    interval = binomtest(hits, n).proportion_ci(0.95, "wilson")
    return float(interval.low), float(interval.high)


def quadratic_kappa(counts: NDArray[np.float64]) -> float:
    """Cohen's kappa (1968) with squared weights of a table of counts, (grades, grades); NaN where it is undefined."""
    grades = np.arange(len(counts))
    weights = np.subtract.outer(grades, grades) ** 2
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(1.0, counts.sum())
    by_chance = float((weights * expected).sum())
    return 1 - float((weights * counts).sum()) / by_chance if by_chance > 0 else float("nan")


def kappa_interval(first: Qrels, second: Qrels, seed: int) -> tuple[float, float]:
    """The 95% interval of the quadratic kappa by resampling topics, since grades of a topic depend on each other."""
    tables = []
    for qid in sorted(set(first) & set(second)):
        counts = np.zeros((4, 4))
        for name in set(first[qid]) & set(second[qid]):
            counts[first[qid][name], second[qid][name]] += 1
        tables.append(counts)
    stacked = np.stack(tables)
    generator = np.random.default_rng([seed, 3])
    drawn = [
        quadratic_kappa(stacked[generator.integers(len(tables), size=len(tables))].sum(axis=0)) for _ in range(_DRAWS)
    ]
    finite = [value for value in drawn if value == value] or [float("nan")]
    low, high = np.percentile(finite, [2.5, 97.5])
    return float(low), float(high)
