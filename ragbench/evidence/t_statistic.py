"""The t of a mean with a floor under its variance, and the bounds of the mean that it gives.

With m the mean, s the standard deviation (over n) and n the number of queries, z = sqrt(n - 1) m / s. Nothing is
corrected for skew here: the samples that z is compared with (`ragbench.evidence.max_t`) have the skew of the data.
A correction in z itself (Hall, JRSS B 54, 1992) is solved through a cube root, which is steep near its pole, and 15 to
60 topics reach that: the 90th percentile of half-widths was twice as large at the same coverage
(`research/bench/few_topics.py`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragbench.base import minimums

_Floats = NDArray[np.float64]

_NOTHING = 1e-30  # added to every variance, so that a row of ties is not divided by 0

_TYPICAL = 16.0
"""The variance of a row is at least the one it has with this many queries of a typical difference of the family.

Otherwise a row with few changed queries in a sample would look as if it never changed. The value was chosen by the
simulation in `research/bench/few_topics.py`.
"""


def floor(differences: _Floats, n: NDArray[Any]) -> _Floats:
    """The least variance of every row of (k, queries), shape (k,); at most that of a row without ties."""
    typical = (differences**2).sum() / max(1, np.count_nonzero(differences))
    return np.asarray(np.minimum(1.0, _TYPICAL / np.maximum(n, 1)) * typical + _NOTHING)


def sums(differences: _Floats) -> tuple[_Floats, _Floats]:
    """The sums of every row: of the differences and of their squares."""
    return differences.sum(axis=1), (differences**2).sum(axis=1)


def statistic(n: Any, first: Any, second: Any, floor: Any) -> _Floats:
    """z of every row from `n` values with these sums; arguments broadcast."""
    mean, root = _moments(n, first, second, floor)
    return np.asarray(np.sqrt(n - 1.0) * mean / root)


def _moments(n: Any, first: Any, second: Any, floor: Any) -> tuple[_Floats, _Floats]:
    """Mean and standard deviation (over n, at least the root of `floor`)."""
    mean = first / n
    return np.asarray(mean), np.asarray(np.sqrt(np.maximum(second / n - mean**2, floor)))


def bounds(differences: _Floats, n: NDArray[Any], above: Any, below: Any) -> tuple[_Floats, _Floats]:
    """The bounds of the means whose z is at most `above` and at least -`below`, by row; NaN below three values."""
    mean, root = _moments(n, *sums(differences), floor(differences, n))
    with np.errstate(invalid="ignore", divide="ignore"):
        error = root / np.sqrt(n - 1.0)
        low, high = mean - above * error, mean + below * error
    return np.where(n < minimums.FOR_CI, np.nan, low), np.where(n < minimums.FOR_CI, np.nan, high)


class Mean(NamedTuple):
    """The mean of `n` values and its 95% interval, NaN for fewer than three values."""

    mean: float
    low: float
    high: float
    n: int


def mean(values: ArrayLike) -> Mean:
    """The mean of values of shape (n,) with Student's interval, cut at 0 and 1 where all values lie between them."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    row = np.asarray(values, dtype=np.float64)
    n = len(row)
    centre = float(row.mean()) if n else math.nan
    if n < minimums.FOR_CI:
        return Mean(centre, math.nan, math.nan, n)
    reach = float(stdtrit(n - 1, 0.975)) * float(row.std(ddof=1)) / math.sqrt(n)
    least, most = (0.0, 1.0) if row.min() >= 0 and row.max() <= 1 else (-math.inf, math.inf)
    return Mean(centre, max(least, centre - reach), min(most, centre + reach), n)
