"""How sure a mean over queries is, of one arm alone; differences between arms are in `statistics`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Mean(NamedTuple):
    """The mean of `n` values, and its interval; NaN where fewer than three say nothing about it."""

    mean: float
    low: float
    high: float
    n: int


def mean(values: ArrayLike, confidence: float = 0.95) -> Mean:
    """The mean of values of shape (n,) with Student's interval."""
    from scipy.stats import t

    row = np.asarray(values, dtype=np.float64)
    n = len(row)
    centre = float(row.mean()) if n else math.nan
    if n < 3:
        return Mean(centre, math.nan, math.nan, n)
    reach = float(t.ppf((1 + confidence) / 2, n - 1)) * float(row.std(ddof=1)) / math.sqrt(n)
    return Mean(centre, centre - reach, centre + reach, n)
