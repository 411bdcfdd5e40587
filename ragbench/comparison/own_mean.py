"""How sure the mean of one arm over topics is, alone; a difference between arms has its own, paired interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    """The mean of values of shape (n,), of any unit, with Student's interval."""
    row = np.asarray(values, dtype=np.float64)
    n = len(row)
    centre = float(row.mean()) if n else math.nan
    if n < 3:
        return Mean(centre, math.nan, math.nan, n)
    reach = _reach(row, confidence)
    return Mean(centre, centre - reach, centre + reach, n)


def interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval of the mean of values from 0 to 1, cut to them; NaN for fewer than two values."""
    row = np.asarray(values, dtype=np.float64)
    if len(row) < 2:
        return math.nan, math.nan
    centre, reach = float(row.mean()), _reach(row, confidence)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def _reach(row: np.ndarray, confidence: float) -> float:
    from scipy.stats import t

    return float(t.ppf((1 + confidence) / 2, len(row) - 1)) * float(row.std(ddof=1)) / math.sqrt(len(row))
