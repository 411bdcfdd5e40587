"""Power: the minimum detectable effect of a comparison, and how many queries a difference needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from ragbench.base import minimums
from ragbench.base.errors import ConfigError
from ragbench.evidence import t_statistic
from ragbench.evidence.max_t import resamples

_Floats = NDArray[np.float64]

POWER = 0.8
_DRAWS = 1_000
_STEPS = 16  # of a bisection from eight standard deviations: to a ten-thousandth of one


def detectable_effects(
    differences: _Floats,
    present: NDArray[np.bool_],
    critical: tuple[float, float],
    *,
    seed: int,
    least: _Floats | float = 0.0,
) -> _Floats:
    """For every row of (k, n), the true mean difference that exceeds `critical` in 80% of bootstrap experiments.

    `critical` are those of positive and of negative effects; `least` is the sum over queries that a sample of each row
    must exceed.

    An experiment resamples queries, ties included; an effect shifts every query that is not a tie. The direction
    that is harder to find counts: with the mean of both directions, only 73 to 79% of the experiments in
    `research/bench/promises.py` find it. NaN for rows with fewer than `minimums.FOR_MDE` queries or changed queries.
    """
    n, changed = present.sum(axis=1), (differences != 0).sum(axis=1)
    floors = t_statistic.floor(differences, n)
    enough = (n >= minimums.FOR_MDE) & (changed >= minimums.FOR_MDE)
    effects = np.full(len(differences), np.nan)
    if not enough.any():
        return effects
    rows, n = differences[enough], n[enough][:, np.newaxis]
    centred = _with_zero_mean(rows)
    parts = [
        (centred @ block, centred**2 @ block, (rows != 0) @ block, present[enough] @ block)
        for block in resamples(rows.shape[1], len(rows), _DRAWS, seed)
    ]
    first, second, moved, size = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    share = (rows != 0).sum(axis=1, keepdims=True) / n
    floor, sums_at_least = (
        floors[enough][:, np.newaxis],
        np.broadcast_to(least, len(differences))[enough][:, np.newaxis],
    )

    def power(effect: _Floats, *, sign: float) -> _Floats:
        """The share of experiments that find an effect of this size and sign, by row."""
        step = sign * effect[:, np.newaxis] / share
        sums = (first + step * moved, second + 2 * step * first + step**2 * moved)
        z = t_statistic.statistic(np.maximum(size, 1.0), *sums, floor)
        significant = (sign * z > critical[0 if sign > 0 else 1]) & (sign * sums[0] > sums_at_least)
        return np.asarray(significant.mean(axis=1))

    spread = np.sqrt((rows**2).sum(axis=1) / n[:, 0])
    either = [_least(partial(power, sign=sign), spread) for sign in (1.0, -1.0)]
    effects[enough] = np.maximum(*either)
    return effects


def _least(power: Callable[[_Floats], _Floats], start: _Floats) -> _Floats:
    """The least effect with the wanted power, by bisection from 0 to eight standard deviations."""
    low, high = np.zeros_like(start), 8.0 * start
    for _ in range(_STEPS):
        middle = (low + high) / 2
        reached = power(middle) >= POWER
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def _with_zero_mean(differences: _Floats) -> _Floats:
    """The rows with mean 0 and the same ties: all other differences are shifted by the same amount."""
    changed = differences != 0
    shift = differences.sum(axis=1, keepdims=True) / np.maximum(changed.sum(axis=1, keepdims=True), 1)
    return np.where(changed, differences - shift, 0.0)


def minimum_detectable_effect(sd: float, n: int, *, confidence: float = 0.95, family: int = 1) -> float:
    """The smallest true mean difference that a paired t test of `n` queries finds with probability `POWER`.

    For planning: `sd` is the standard deviation of the differences, from an earlier experiment (0.1 to 0.2 is usual for
    nDCG@10). Two-sided at (1 - confidence) / family. Infinite for fewer than two queries.
    """
    return float("inf") if n < 2 else float(sd) * _detectable_sds(n, (1 - confidence) / family)


def queries_needed(effect: float, sd: float, *, confidence: float = 0.95, family: int = 1) -> int:
    """How many queries find a true mean difference of `effect` with probability `POWER`; at least 2."""
    if not effect > 0:
        raise ConfigError(f"the effect to detect must be greater than 0, got {effect:g}")

    def finds(n: int) -> bool:
        return minimum_detectable_effect(sd, n, confidence=confidence, family=family) <= effect

    high = 2
    while not finds(high):
        high *= 2
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if finds(middle) else (middle + 1, high)
    return high


@lru_cache(maxsize=1024)
def _detectable_sds(n: int, alpha: float) -> float:
    """The minimum detectable effect in standard deviations: the noncentrality at which the t test has `POWER`.

    Significance in the wrong direction does not count as found.
    """
    from scipy.special import nctdtrinc, stdtrit

    critical = -stdtrit(n - 1, alpha / 2)
    return float(nctdtrinc(n - 1, 1 - POWER, critical)) / float(np.sqrt(n))
