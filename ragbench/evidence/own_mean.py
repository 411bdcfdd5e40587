"""The interval of one arm's mean over topics; a difference between arms has its own, paired interval."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ragbench.base import fewest


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
    if n < fewest.INTERVAL:
        return Mean(centre, math.nan, math.nan, n)
    reach = float(stdtrit(n - 1, 0.975)) * float(row.std(ddof=1)) / math.sqrt(n)
    least, most = (0.0, 1.0) if row.min() >= 0 and row.max() <= 1 else (-math.inf, math.inf)
    return Mean(centre, max(least, centre - reach), min(most, centre + reach), n)
