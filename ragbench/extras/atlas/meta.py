"""Effects of one change on many collections: the pooled effect, and what to expect on the next collection.

Random effects with the between-collection variance of Paule and Mandel (J. Research of the National Bureau of Standards
87, 1982), standard errors of Hartung and Knapp (Statistics in Medicine 20, 2001), never smaller than without their
factor, and the prediction of Partlett and Riley (Statistics in Medicine 36, 2017) for a collection not yet measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragbench.base import minimums
from ragbench.base.types import ResultsError

Floats = NDArray[np.float64]

_FLOOR = 1e-4  # of a standard error: a change that alters no topic is known exactly, and must not weigh infinitely
_STEADY = 20  # topics: what the variance of all collections counts in that of each
_PRIOR_TOPICS = 10  # topics: what the variance elsewhere counts in that of a run
_Z = 1.959964  # of a normal distribution, for 95%


@dataclass(frozen=True)
class Pooled:
    """The mean effect over `collections` with its standard error; `tau`: the standard deviation between collections."""

    collections: int
    effect: float
    error: float
    tau: float

    @property
    def sd(self) -> float:
        """The standard deviation of the prediction for a new collection."""
        return hypot(self.tau, self.error)

    @property
    def has_enough_collections(self) -> bool:
        """Whether there are enough collections to claim something."""
        return self.collections >= minimums.COLLECTIONS


def pool(effects: ArrayLike, errors: ArrayLike) -> Pooled:
    """Pool effects with their standard errors, one of each per collection. Raises ResultsError below two."""
    values, variances = checked(effects, errors)
    tau2 = between(values, variances)
    weights = 1 / (variances + tau2)
    mean = float(weights @ values / weights.sum())
    spread = float(weights @ (values - mean) ** 2 / (len(values) - 1))
    return Pooled(len(values), mean, float(np.sqrt(max(spread, 1.0) / weights.sum())), float(np.sqrt(tau2)))


def between(effects: Floats, variances: Floats) -> float:
    """The variance between collections: where the weighted squares around the mean equal their expectation."""
    from scipy.optimize import brentq

    def excess(tau2: float) -> float:
        weights = 1 / (variances + tau2)
        mean = weights @ effects / weights.sum()
        return float(weights @ (effects - mean) ** 2 - (len(effects) - 1))

    if excess(0.0) <= 0:
        return 0.0
    upper = float(np.var(effects, ddof=1)) * len(effects) + 1e-12
    return float(brentq(excess, 0.0, upper, xtol=1e-14))


@dataclass(frozen=True)
class Expected:
    """The predicted effect of a change: a normal distribution, and the probability that it is positive."""

    effect: float
    sd: float

    @property
    def better(self) -> float:
        """The probability that the change helps."""
        from scipy import stats

        return float(stats.norm.cdf(self.effect / self.sd))

    @property
    def low(self) -> float:
        """The lower end of the interval that holds the effect with probability .95."""
        return self.effect - _Z * self.sd

    @property
    def high(self) -> float:
        """The upper end of it."""
        return self.effect + _Z * self.sd


def expect(prior: Pooled, own_effects: Sequence[float], typical_sd: float) -> Expected:
    """The effect to expect where `own_effects` differences by topic were measured: normal prior, normal likelihood.

    The prior is the prediction for a new collection. Few topics do not tell their own spread: `typical_sd`, that of
    differences by topic elsewhere, counts like `_PRIOR_TOPICS` own topics.
    """
    if not len(own_effects):
        return Expected(prior.effect, prior.sd)
    values = np.asarray(own_effects, dtype=np.float64)
    n = len(values)
    squares = float(((values - values.mean()) ** 2).sum()) + _PRIOR_TOPICS * typical_sd**2
    error2 = max(squares / (n - 1 + _PRIOR_TOPICS) / n, _FLOOR**2)
    prior2 = max(prior.sd**2, _FLOOR**2)
    precision = 1 / prior2 + 1 / error2
    return Expected((prior.effect / prior2 + float(values.mean()) / error2) / precision, float(precision**-0.5))


def steadied(errors: ArrayLike, topics: ArrayLike) -> Floats:
    """Standard errors that few topics do not distort, shape (collections,).

    A change that altered one topic of thirty, or none, is not known as exactly as its own spread says. The variance by
    topic of all collections counts in each like `_STEADY` topics of its own.
    """
    n = np.asarray(topics, dtype=np.float64)
    variances = np.asarray(errors, dtype=np.float64) ** 2 * n
    common = float(n @ variances / n.sum())
    mixed = ((n - 1) * variances + _STEADY * common) / (n - 1 + _STEADY)
    smoothed: Floats = np.sqrt(mixed / n)
    return smoothed


def checked(effects: ArrayLike, errors: ArrayLike) -> tuple[Floats, Floats]:
    """Effects and variances as arrays; a standard error of 0 becomes the smallest that differs from 0."""
    values, standard_errors = np.asarray(effects, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if values.shape != standard_errors.shape or values.ndim != 1 or len(values) < 2:
        raise ResultsError(f"effects are pooled over two collections or more, got {values.size}")
    if not (np.isfinite(values).all() and np.isfinite(standard_errors).all() and (standard_errors >= 0).all()):
        raise ResultsError("an effect or its standard error is not a finite number: measure that collection again")
    return values, np.maximum(standard_errors, _FLOOR) ** 2
