"""How large the largest statistic of a family grows by chance: by sign flips, and by resampling under the null.

Both treat a query as one unit over all rows, so that dependence between rows, such as a common base, is kept:
single-step maxT (Westfall and Young, "Resampling-Based Multiple Testing", 1993). Sign flips are exact where differences
are symmetric under the null (Smucker, Allan and Carterette, CIKM 2007); the bootstrap (Romano and Wolf, Econometrica
73, 2005) keeps the shape of differences that are skewed and mostly ties. An effect must be significant by both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.evidence import t_statistic

_Floats = NDArray[np.float64]

_CELLS = 1_000_000  # size of a block, draws times rows or queries: limits memory to about 50 MB
_NEAR = 1e-9  # statistics this near are equal: the same sum added up in another order


@dataclass(frozen=True)
class Chance:
    """The null distribution of the largest statistic of a family, by sign flips and by a centred bootstrap.

    `sign_flip`: the largest |z| of each sign pattern. `bootstrap`: the largest |z| of each bootstrap sample. `upper`
    and `lower`: the largest z, and the largest -z, of each bootstrap sample; rows that are skewed alike err on one side
    only. `per_row`: z of every row in every draw, (rows, draws), of sign patterns and samples, for claims about one row
    in one direction; empty unless requested.
    """

    sign_flip: _Floats
    bootstrap: _Floats
    upper: _Floats
    lower: _Floats
    per_row: tuple[NDArray[np.float32], ...] = ()


def simulate(
    differences: _Floats, compared: NDArray[np.bool_], seed: int, draws: int, *, per_row: bool = False
) -> Chance:
    """The z of the rows of (k, n) in every sign pattern, and in every bootstrap sample of the null.

    `differences` are 0 where `compared` is False: the row has no value for the query. If few queries changed, all
    sign patterns are used.
    """
    n = compared.sum(axis=1)[:, np.newaxis]
    floor = t_statistic.floor(differences, n[:, 0])[:, np.newaxis]
    moved = differences[:, (differences != 0).any(axis=0)]
    squares = (moved**2).sum(axis=1, keepdims=True)
    flipped = (
        t_statistic.statistic(n, moved @ signs, squares, floor)
        for signs in _sign_patterns(moved.shape[1], len(differences), draws, seed)
    )
    centred = np.where(compared, differences - differences.sum(axis=1, keepdims=True) / n, 0.0)
    present = compared.astype(np.float64)
    resampled = (
        t_statistic.statistic(np.maximum(present @ counts, 1.0), centred @ counts, centred**2 @ counts, floor)
        for counts in resamples(differences.shape[1], len(differences), draws, seed)
    )
    (up, down, signs), (upper, lower, samples) = (_largest(z, len(differences), per_row) for z in (flipped, resampled))
    rows = (signs, samples) if per_row else ()
    return Chance(np.maximum(up, down), np.maximum(upper, lower), upper, lower, rows)


def _largest(blocks: Iterable[_Floats], rows: int, per_row: bool) -> tuple[_Floats, _Floats, NDArray[np.float32]]:
    """The largest z and the largest -z of every draw, and optionally all z."""
    up, down, signed = [np.empty(0)], [np.empty(0)], [np.empty((rows, 0), np.float32)]
    for z in blocks:
        up.append(z.max(axis=0))
        down.append(-z.min(axis=0))
        if per_row:
            signed.append(z.astype(np.float32))
    return np.concatenate(up), np.concatenate(down), np.concatenate(signed, axis=1)


def _sign_patterns(queries: int, rows: int, draws: int, seed: int) -> Iterator[_Floats]:
    """Blocks of sign patterns, (queries, patterns), 1 or -1; if there are few, all except the pattern of the data."""
    step = max(1, _CELLS // max(queries, rows))
    if 2**queries <= draws + 1:
        numbers = np.arange(1, 2**queries)
        yield np.asarray(1.0 - 2.0 * ((numbers >> np.arange(queries)[:, np.newaxis]) & 1), dtype=np.float64)
        return
    generator = np.random.default_rng([seed, 1])
    for start in range(0, draws, step):
        size = min(step, draws - start)
        yield 2.0 * generator.integers(2, size=(queries, size)).astype(np.float64) - 1.0


def resamples(queries: int, rows: int, draws: int, seed: int) -> Iterator[_Floats]:
    """Blocks of bootstrap samples, (queries, samples): how often each query was drawn."""
    generator, step = np.random.default_rng([seed, 0]), max(1, _CELLS // max(queries, rows))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        drawn = generator.integers(queries, size=(size, queries)) + np.arange(size)[:, np.newaxis] * queries
        yield np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape).T.astype(np.float64)


def p_values(z: _Floats, by_chance: Chance) -> _Floats:
    """p of signed statistics, the largest over the references: of |z|, and of the tail on its side, counted twice."""
    size = np.abs(z)
    tail = np.where(z > 0, tail_p(size, by_chance.upper, 2), tail_p(size, by_chance.lower, 2))
    return np.asarray(np.maximum(tail, np.maximum(*(tail_p(size, largest) for largest in _both(by_chance)))))


def tail_p(observed: _Floats, draws: _Floats, times: int = 1) -> _Floats:
    """p = (b + 1) / (m + 1), where b of m draws are as large (Phipson and Smyth 2010), each counted `times`."""
    as_large = times * (len(draws) - np.searchsorted(np.sort(draws), observed - _NEAR, side="left"))
    return np.asarray(np.minimum(1.0, (as_large + 1.0) / (len(draws) + 1.0)), dtype=np.float64)


def critical(by_chance: Chance, level: float, n: int, rows: int) -> tuple[float, float]:
    """The largest z, and the largest -z, whose p is above `level`: the reach of lower and of upper bounds.

    If so few queries changed that every p is above `level`, it is the critical value of Student's t for `n` queries,
    with Bonferroni's correction for the `rows`: this gives intervals, and no row is significant.
    """
    student = -_student(n, level / (2 * rows))
    both = max(_quantile(draws, level, student) for draws in _both(by_chance))
    above, below = (_quantile(draws, level, student, 2) for draws in (by_chance.upper, by_chance.lower))
    return max(both, above), max(both, below)


def _both(by_chance: Chance) -> tuple[_Floats, _Floats]:
    return by_chance.sign_flip, by_chance.bootstrap


def _quantile(draws: _Floats, level: float, otherwise: float, times: int = 1) -> float:
    """The largest value whose `tail_p` among the draws is above `level`; `otherwise` where all of them are."""
    allowed = int(np.floor((level * (len(draws) + 1) + _NEAR - 1) / times))
    return float(np.partition(draws, -1 - allowed)[-1 - allowed]) if 0 <= allowed < len(draws) else otherwise


def _student(n: int, tail: float) -> float:
    from scipy.special import stdtrit  # scipy.stats has it and takes three times as long to import

    return float(stdtrit(max(n - 1, 1), tail))


def critical_alone(largest_by_row: Sequence[NDArray[np.float32]], level: float, n: NDArray[Any]) -> _Floats:
    """For every row, the z that chance exceeds, in one direction, with probability `level`: that row alone.

    For the lower bound of a mean. No other row takes part, so it does not depend on their number. At least Student's t:
    where the floor of the family binds, a row's z is its mean over a constant, whose quantiles alone are too small.
    """
    from scipy.special import stdtrit

    student = -stdtrit(np.maximum(n - 1, 1), level)
    thresholds = [np.broadcast_to(student, np.shape(n))]
    for draws in largest_by_row:
        allowed = int(np.floor(level * (draws.shape[1] + 1) + _NEAR)) - 1
        if 0 <= allowed < draws.shape[1]:
            thresholds.append(np.partition(draws, -1 - allowed, axis=1)[:, -1 - allowed])
    return np.asarray(np.max(thresholds, axis=0), dtype=np.float64)
