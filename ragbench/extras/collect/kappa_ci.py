"""Confidence intervals of how far two judges agree: those of the share of equal grades, and of the quadratic kappa."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragbench.benchmark.benchmark import Qrels

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
