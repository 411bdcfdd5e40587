"""Whether the two halves of a benchmark agree: effects on train and test, and whether they differ by more than chance.

A permutation test: topics are assigned to the halves at random many times, in the same way for all rows. p is adjusted
for the family by the largest statistic (Westfall and Young, as in `ragbench.evidence.max_t`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.base import minimums
from ragbench.base.columns import Column, Columns
from ragbench.benchmark.split import TEST, TRAIN
from ragbench.evidence.arms import Arms
from ragbench.evidence.max_t import tail_p
from ragbench.evidence.statistics import Contrast

if TYPE_CHECKING:
    import pandas as pd

_Floats = NDArray[np.float64]

COLUMNS = Columns.of(
    Column("factor", "change", text=True),
    Column("level", text=True),
    Column("train", form="+.3f"),
    "n_train",
    Column("test", form="+.3f"),
    "n_test",
    Column(
        "p",
        "",
        "that both halves have the same mean: topics assigned to the halves at random, adjusted for this table",
    ),
)
_BLOCK = 1_000


def halves(arms: Arms, contrasts: Sequence[Contrast], splits: Mapping[str, str]) -> pd.DataFrame:
    """A row for every contrast and level: the mean effect on train and on test, and p that both are equal; `COLUMNS`.

    `splits` has the split of a topic by qid. A level at which a split has fewer than
    `minimums.PER_SPLIT` queries is excluded.
    """
    names, rows = [], []
    for contrast in contrasts:
        for level in arms.levels:
            qids, differences = arms.differences(contrast, level)
            sides = np.array([splits.get(qid, "") for qid in qids])
            known = sides[~np.isnan(differences)]
            if min((known == side).sum() for side in (TRAIN, TEST)) >= minimums.PER_SPLIT:
                names.append((":".join(contrast.factors), level))
                rows.append((differences, sides))
    if not rows:
        return COLUMNS.frame()
    differences = np.stack([values for values, _ in rows])
    in_train = rows[0][1] == TRAIN
    present = ~np.isnan(differences)
    p = _heterogeneity(
        np.where(present, differences, 0.0), present, in_train, arms.policy.seed, arms.policy.statistics.draws
    )
    results = []
    for name, values, known, chance in zip(names, differences, present, p, strict=True):
        train, test = values[known & in_train], values[known & ~in_train]
        results.append((*name, float(train.mean()), len(train), float(test.mean()), len(test), float(chance)))
    return COLUMNS.frame(results).round({"train": 12, "test": 12})


def sentences(frame: pd.DataFrame, alpha: float = 0.05) -> list[str]:
    """A sentence for every effect on which the halves disagree."""
    return [
        f"{row['factor']}: {row['level']}s {row['train']:+.3f} on train and {row['test']:+.3f} on test topics "
        f"(p = {row['p']:.2g}): the halves disagree, so look at which topics it helps before you rely on the mean"
        for row in frame.to_dict(orient="records")
        if row["p"] <= alpha
    ]


def _heterogeneity(
    differences: _Floats, present: NDArray[np.bool_], in_train: NDArray[np.bool_], seed: int, draws: int
) -> _Floats:
    """p for every row of (k, n) that both halves have the same mean: a permutation test, adjusted for the rows.

    The statistic is Welch's t; its square is Cochran's Q of two groups (W. G. Cochran, Biometrics 10, 1954).
    """
    observed = _statistic(differences, present, in_train[:, np.newaxis].astype(np.float64))[:, 0]
    generator, largest = np.random.default_rng([seed, 2]), []
    for start in range(0, draws, _BLOCK):
        dealt = np.stack([generator.permutation(in_train) for _ in range(min(_BLOCK, draws - start))], axis=1)
        largest.append(_statistic(differences, present, dealt.astype(np.float64)).max(axis=0))
    return tail_p(observed, np.concatenate(largest))


def _statistic(differences: _Floats, present: NDArray[np.bool_], first: _Floats) -> _Floats:
    """|Welch's t| of every row for every column of `first`, shape (n, deals): 1 for queries in the first half."""
    squares, counted = differences**2, present.astype(np.float64)

    def moments(side: _Floats) -> tuple[_Floats, _Floats]:
        n = np.maximum(counted @ side, 1.0)
        mean = differences @ side / n
        return mean, np.maximum(squares @ side / n - mean**2, 0.0) / np.maximum(n - 1, 1.0)

    (one, spread), (second, spread_of_other) = moments(first), moments(1.0 - first)
    error = np.sqrt(spread + spread_of_other)
    return np.asarray(np.abs(one - second) / np.where(error > 0, error, np.inf), dtype=np.float64)
