"""How large the largest statistic of a family grows by chance, when the sign of every difference is chance.

All differences of a query change their sign together, so that whatever the rows share, such as the base they are
compared with, is shared by chance too: single-step maxT (Westfall and Young, "Resampling-Based Multiple Testing",
1993). Where differences are symmetric the test is exact (Fisher; Smucker, Allan and Carterette, CIKM 2007).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ragbench.comparison import skew

Floats = NDArray[np.float64]

_CELLS = 1_000_000  # of a block of patterns times rows or queries: bounds memory to some 50 MB
_NEAR = 1e-9  # statistics this near are equal: one sum, added up in another order


def largest(differences: Floats, n: NDArray[np.int_], seed: int, draws: int) -> Floats:
    """The largest |z| of the rows of (k, queries) in every sign pattern; `n` (k,) counts a row's queries."""
    floor = skew.floor(differences, n)[:, np.newaxis]
    moved = differences[:, (differences != 0).any(axis=0)]
    squares, cubes = (moved**2).sum(axis=1, keepdims=True), moved**3
    found = [
        np.abs(skew.statistic(n[:, np.newaxis], moved @ signs, squares, cubes @ signs, floor)).max(axis=0)
        for signs in sign_patterns(moved.shape[1], len(differences), draws, seed)
    ]
    return np.concatenate([np.empty(0), *found])


def sign_patterns(queries: int, rows: int, draws: int, seed: int) -> Iterator[Floats]:
    """Blocks of sign patterns, (queries, patterns), 1 or -1; all but that of the data where these are few enough."""
    step = max(1, _CELLS // max(queries, rows))
    if 2**queries <= draws + 1:
        numbers = np.arange(1, 2**queries)
        yield np.asarray(1.0 - 2.0 * ((numbers >> np.arange(queries)[:, np.newaxis]) & 1), dtype=np.float64)
        return
    generator = np.random.default_rng([seed, 1])
    for start in range(0, draws, step):
        size = min(step, draws - start)
        yield 2.0 * generator.integers(2, size=(queries, size)).astype(np.float64) - 1.0


def p_values(observed: Floats, by_chance: Floats) -> Floats:
    """p = (b + 1) / (m + 1), b of m patterns being as large (Phipson and Smyth 2010)."""
    as_large = len(by_chance) - np.searchsorted(np.sort(by_chance), observed - _NEAR, side="left")
    return np.asarray((as_large + 1.0) / (len(by_chance) + 1.0), dtype=np.float64)


def critical(by_chance: Floats, level: float, n: int, rows: int) -> float:
    """The largest statistic whose p is above `level`.

    Where so few queries changed that every p is, it is that of Student's t for `n` queries, with Bonferroni's
    correction for the `rows`: it bounds the means, and refuses none of them.
    """
    from scipy.special import stdtrit  # scipy.stats has it and takes three times as long to import

    allowed = int(np.floor(level * (len(by_chance) + 1) + _NEAR)) - 1
    if 0 <= allowed < len(by_chance):
        return float(np.sort(by_chance)[-1 - allowed])
    return float(-stdtrit(max(n - 1, 1), level / (2 * rows)))
