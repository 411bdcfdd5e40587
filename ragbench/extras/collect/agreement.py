"""Agreement of two judges over the pairs that both have graded: the share of equal grades, and weighted kappa."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragbench.base.types import BenchmarkError
from ragbench.benchmark.benchmark import Qrels


@dataclass(frozen=True)
class Agreement:
    """Agreement of two judges over `n_pairs` common pairs of `n_topics` topics.

    `same` is the share of equal grades. `kappa` is Cohen's (1968) with squared weights: 1 is perfect, 0 is chance, and
    NaN where only one grade occurs, for which it is undefined.
    """

    n_pairs: int
    n_topics: int
    same: float
    kappa: float


def agreement(first: Qrels, second: Qrels) -> Agreement:
    """Compare two judges' grades, 0 or more. BenchmarkError without a common pair."""
    pairs = [
        (qid, grade, second[qid][target])
        for qid, grades in first.items()
        for target, grade in grades.items()
        if target in second.get(qid, {})
    ]
    if not pairs:
        raise BenchmarkError("the two sets of judgments have no pair in common: let both judges grade the same pairs")
    highest = max(max(one, two) for _, one, two in pairs)
    counts = np.zeros((highest + 1, highest + 1))
    for _, one, two in pairs:
        counts[one, two] += 1
    return Agreement(
        n_pairs=len(pairs),
        n_topics=len({qid for qid, _, _ in pairs}),
        same=float(np.trace(counts)) / len(pairs),
        kappa=_quadratic_kappa(counts),
    )


def _quadratic_kappa(counts: NDArray[np.float64]) -> float:
    """Cohen's kappa with squared weights of a table of counts, (grades, grades); NaN where it is undefined."""
    grades = np.arange(len(counts))
    weights = np.subtract.outer(grades, grades) ** 2
    by_chance = float((weights * np.outer(counts.sum(axis=1), counts.sum(axis=0))).sum()) / counts.sum()
    return 1 - float((weights * counts).sum()) / by_chance if by_chance > 0 else float("nan")
