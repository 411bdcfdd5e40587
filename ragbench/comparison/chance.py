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

from ragbench.comparison import skew

Floats = NDArray[np.float64]

_CELLS = 1_000_000  # size of a block, draws times rows or queries: limits memory to about 50 MB
_NEAR = 1e-9  # statistics this near are equal: the same sum added up in another order


@dataclass(frozen=True)
class Chance:
    """What chance alone makes of a family, by each of the two references.

    `largest`: the largest |z| of the rows in every draw. `each`: z of every row in every draw, (rows, draws), for
    claims about one row in one direction; empty when not asked for.
    """

    largest: tuple[Floats, ...]
    each: tuple[NDArray[np.float32], ...] = ()


def simulate(differences: Floats, here: NDArray[np.bool_], seed: int, draws: int, *, each: bool = False) -> Chance:
    """The z of the rows of (k, n) in every sign pattern, and in every bootstrap sample of the null.

    `differences` are 0 where `here` is False: the row has no value for the query. Where few queries changed, all sign
    patterns are used.
    """
    n = here.sum(axis=1)[:, np.newaxis]
    floor = skew.floor(differences, n[:, 0])[:, np.newaxis]
    moved = differences[:, (differences != 0).any(axis=0)]
    squares = (moved**2).sum(axis=1, keepdims=True)
    flipped = (
        skew.statistic(n, moved @ signs, squares, floor)
        for signs in sign_patterns(moved.shape[1], len(differences), draws, seed)
    )
    centred = np.where(here, differences - differences.sum(axis=1, keepdims=True) / n, 0.0)
    present = here.astype(np.float64)
    again = (
        skew.statistic(np.maximum(present @ counts, 1.0), centred @ counts, centred**2 @ counts, floor)
        for counts in resamples(differences.shape[1], len(differences), draws, seed)
    )
    largest, rows = zip(*(_collected(blocks, len(differences), each) for blocks in (flipped, again)), strict=True)
    return Chance(largest, rows if each else ())


def _collected(blocks: Iterable[Floats], rows: int, each: bool) -> tuple[Floats, NDArray[np.float32]]:
    found = [(np.abs(z).max(axis=0), z.astype(np.float32) if each else np.empty((rows, 0), np.float32)) for z in blocks]
    largest, signed = [np.empty(0)], [np.empty((rows, 0), np.float32)]
    return np.concatenate(largest + [a for a, _ in found]), np.concatenate(signed + [b for _, b in found], axis=1)


def sign_patterns(queries: int, rows: int, draws: int, seed: int) -> Iterator[Floats]:
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


def resamples(queries: int, rows: int, draws: int, seed: int) -> Iterator[Floats]:
    """Blocks of bootstrap samples, (queries, samples): how often each query was drawn."""
    generator, step = np.random.default_rng([seed, 0]), max(1, _CELLS // max(queries, rows))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        drawn = generator.integers(queries, size=(size, queries)) + np.arange(size)[:, np.newaxis] * queries
        yield np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape).T.astype(np.float64)


def p_values(observed: Floats, by_chance: Sequence[Floats]) -> Floats:
    """p = (b + 1) / (m + 1), where b of m draws are as large (Phipson and Smyth 2010); the largest over references."""

    def one(draws: Floats) -> Floats:
        as_large = len(draws) - np.searchsorted(np.sort(draws), observed - _NEAR, side="left")
        return np.asarray((as_large + 1.0) / (len(draws) + 1.0), dtype=np.float64)

    return np.asarray(np.max([one(draws) for draws in by_chance], axis=0), dtype=np.float64)


def critical(by_chance: Sequence[Floats], level: float, n: int, rows: int) -> float:
    """The largest statistic whose p is above `level`.

    If so few queries changed that every p is above `level`, it is the critical value of Student's t for `n` queries,
    with Bonferroni's correction for the `rows`: this gives intervals, and no row is significant.
    """
    from scipy.special import stdtrit  # scipy.stats has it and takes three times as long to import

    found = []
    for draws in by_chance:
        allowed = int(np.floor(level * (len(draws) + 1) + _NEAR)) - 1
        enough = 0 <= allowed < len(draws)
        found.append(np.sort(draws)[-1 - allowed] if enough else -stdtrit(max(n - 1, 1), level / (2 * rows)))
    return float(max(found))


def critical_alone(each: Sequence[NDArray[np.float32]], level: float, n: NDArray[Any]) -> Floats:
    """For every row, the z that chance exceeds, in one direction, with probability `level`: that row alone.

    For the lower bound of a mean. No other row takes part, so it does not depend on their number. Where so few queries
    changed that no z is so rare, it is that of Student's t.
    """
    from scipy.special import stdtrit

    student = -stdtrit(np.maximum(n - 1, 1), level)
    found = []
    for draws in each:
        allowed = int(np.floor(level * (draws.shape[1] + 1) + _NEAR)) - 1
        enough = 0 <= allowed < draws.shape[1]
        found.append(np.partition(draws, -1 - allowed, axis=1)[:, -1 - allowed] if enough else student)
    return np.asarray(np.max(found, axis=0), dtype=np.float64)
