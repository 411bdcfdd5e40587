"""Normalises the scores of a source, so that they compare with those of other sources.

Each function takes the scores of a ranking, float64 of shape (n,) with n at least 1, and the least score that the
source can give, and returns values of the same shape and order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Norm = Literal["min_max", "theoretical", "z", "three_sigma"]


def _min_max(scores: Scores, least: float) -> Scores:
    """From 0 for the lowest to 1 for the best; equal scores are 1."""
    return _between(scores, float(scores.min()), float(scores.max()))


def _theoretical(scores: Scores, least: float) -> Scores:
    """From 0 for the least possible score to 1 for the best; Bruch, Gai and Ingber, TOIS 2023 (TM2C2)."""
    return _between(scores, min(least, float(scores.min())), float(scores.max()))


def _z(scores: Scores, least: float) -> Scores:
    """Standard deviations above the mean; equal scores are 0."""
    return np.asarray((scores - scores.mean()) / (_spread(scores) or 1.0))


def _three_sigma(scores: Scores, least: float) -> Scores:
    """From 0 at three standard deviations below the mean to 1 at three above: distribution-based score fusion."""
    return _z(scores, least) / 6 + 0.5


NORMS: Mapping[Norm, Callable[[Scores, float], Scores]] = MappingProxyType(
    {"min_max": _min_max, "theoretical": _theoretical, "z": _z, "three_sigma": _three_sigma}
)


def _between(scores: Scores, low: float, high: float) -> Scores:
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)


def _spread(scores: Scores) -> float:
    """The standard deviation; exactly 0 for equal scores, where rounding could leave a little."""
    return float(scores.std()) if scores.max() > scores.min() else 0.0
