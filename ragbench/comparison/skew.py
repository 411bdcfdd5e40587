"""The t of a mean corrected for skew, and the bounds of the mean that it gives.

Hall's transformation makes the distribution of a studentised mean nearly symmetric, so that an interval misses the
truth equally often on both sides (P. Hall, "On the removal of skewness by transformation", JRSS B 54, 1992). With w the
mean over the standard deviation, g the skewness and n the number of queries:

    z = sqrt(n - 1) * (w + g w^2 / 3 + g^2 w^3 / 27 + g / 6n)

It grows with w, so it can be solved for the mean. It needs only the sums of the differences, of their squares and of
their cubes, so ten thousand samples cost three matrix products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NOTHING = 1e-30  # added to every variance, so that a row of ties is not divided by 0

TYPICAL = 8.0
"""The variance of a row is at least the one it has with this many queries of a typical difference of the family.

Otherwise a row with few changed queries in a sample would look as if it never changed. The value was chosen by the
simulation in `tests/bench/promises.py`.
"""


def floor(differences: Floats, n: NDArray[Any]) -> Floats:
    """The least variance of every row of (k, queries), shape (k,)."""
    typical = (differences**2).sum() / max(1, np.count_nonzero(differences))
    return np.asarray(TYPICAL * typical / np.maximum(n, 1) + _NOTHING)


def sums(differences: Floats) -> tuple[Floats, Floats, Floats]:
    """The sums of every row: of the differences, of their squares and of their cubes."""
    return differences.sum(axis=1), (differences**2).sum(axis=1), (differences**3).sum(axis=1)


def statistic(n: Any, first: Any, second: Any, third: Any, floor: Any) -> Floats:
    """z of every row from `n` values with these sums; arguments broadcast."""
    mean, root, skew = moments(n, first, second, third, floor)
    w = mean / root
    return np.asarray(np.sqrt(n - 1.0) * (w + skew * w**2 / 3 + skew**2 * w**3 / 27 + skew / (6 * n)))


def moments(n: Any, first: Any, second: Any, third: Any, floor: Any) -> tuple[Floats, Floats, Floats]:
    """Mean, standard deviation (over n, at least the root of `floor`) and skewness (of the unbiased third moment)."""
    mean = first / n
    variance = np.maximum(second / n - mean**2, floor)
    root = np.sqrt(variance)
    cubed = third / n - 3 * mean * second / n + 2 * mean**3
    unbiased = np.where(n > 2, n**2 / np.maximum((n - 1.0) * (n - 2.0), 1.0), 1.0)
    return np.asarray(mean), np.asarray(root), np.asarray(unbiased * cubed / (variance * root))


def bounds(differences: Floats, n: NDArray[Any], critical: float) -> tuple[Floats, Floats]:
    """The lower and upper bounds of the means whose |z| is at most `critical`, by row; NaN below three values."""
    mean, root, skew = moments(n, *sums(differences), floor(differences, n))
    with np.errstate(invalid="ignore", divide="ignore"):
        reach = critical / np.sqrt(n - 1.0)
        low, high = mean - root * solve(reach, skew, n), mean - root * solve(-reach, skew, n)
    return np.where(n < 3, np.nan, low), np.where(n < 3, np.nan, high)


def solve(reached: Any, skew: Any, n: Any) -> Floats:
    """The w at which z / sqrt(n - 1) is `reached`."""
    y = reached - skew / (6 * n)
    flat = np.abs(skew) < 1e-6
    steep = np.where(flat, 1.0, skew)
    return np.asarray(np.where(flat, y, 3 * (np.cbrt(1 + steep * y) - 1) / steep))
