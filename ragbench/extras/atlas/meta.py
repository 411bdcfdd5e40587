"""Effects of one change on many collections: the pooled effect, what differs between them, what to expect on the next.

Random effects with the between-collection variance of Paule and Mandel (J. Research of the National Bureau of Standards
87, 1982), intervals of Hartung and Knapp (Statistics in Medicine 20, 2001), never narrower than without their factor,
and the prediction interval of Partlett and Riley (Statistics in Medicine 36, 2017) for a collection not yet measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragbench.base import minimums
from ragbench.base.errors import ResultsError

Floats = NDArray[np.float64]

_FLOOR = 1e-4  # of a standard error: a change that alters no topic is known exactly, and must not weigh infinitely


@dataclass(frozen=True)
class Pooled:
    """The mean effect over `collections`, and the interval that a new collection's true effect is expected in.

    `tau` is the standard deviation of true effects between collections; `i2` the share of the observed variance that is
    not sampling error; `helps` counts collections with an effect above 0. `sd` is that of the prediction for a new one.
    """

    collections: int
    helps: int
    effect: float
    low: float
    high: float
    tau: float
    i2: float
    sd: float
    predicted_low: float
    predicted_high: float

    @property
    def has_enough_collections(self) -> bool:
        """Whether there are enough collections to claim something."""
        return self.collections >= minimums.COLLECTIONS


def pool(effects: ArrayLike, errors: ArrayLike, confidence: float = 0.95) -> Pooled:
    """Pool effects with their standard errors, one of each per collection. Raises ResultsError below two."""
    from scipy import stats

    values, variances = _checked(effects, errors)
    k = len(values)
    tau2 = between(values, variances)
    weights = 1 / (variances + tau2)
    mean = float(weights @ values / weights.sum())
    spread = float(weights @ (values - mean) ** 2 / (k - 1))
    error = float(np.sqrt(max(spread, 1.0) / weights.sum()))
    sd = float(np.sqrt(tau2 + error**2))
    wide = float(stats.t.ppf((1 + confidence) / 2, k - 1))
    return Pooled(
        collections=k,
        helps=int((values > 0).sum()),
        effect=mean,
        low=mean - wide * error,
        high=mean + wide * error,
        tau=float(np.sqrt(tau2)),
        i2=_i2(values, variances),
        sd=sd,
        predicted_low=mean - wide * sd,
        predicted_high=mean + wide * sd,
    )


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
        return self.effect - 1.959964 * self.sd

    @property
    def high(self) -> float:
        """The upper end of it."""
        return self.effect + 1.959964 * self.sd


def expect(prior: Pooled, own_effects: Sequence[float] = (), typical_sd: float | None = None) -> Expected:
    """The effect to expect where `own_effects` differences by topic were measured: normal prior, normal likelihood.

    The prior is the prediction for a new collection. Few topics do not tell their own spread: `typical_sd`, that of
    differences by topic elsewhere, counts like `_PRIOR_TOPICS` own topics.
    """
    if not len(own_effects):
        return Expected(prior.effect, prior.sd)
    values = np.asarray(own_effects, dtype=np.float64)
    n = len(values)
    squares = float(((values - values.mean()) ** 2).sum())
    prior_squares = 0.0 if typical_sd is None else _PRIOR_TOPICS * typical_sd**2
    degrees = n - 1 + (_PRIOR_TOPICS if typical_sd is not None else 0)
    if degrees < 1:
        return Expected(prior.effect, prior.sd)
    error2 = max((squares + prior_squares) / degrees / n, _FLOOR**2)
    prior2 = max(prior.sd**2, _FLOOR**2)
    precision = 1 / prior2 + 1 / error2
    return Expected((prior.effect / prior2 + float(values.mean()) / error2) / precision, float(precision**-0.5))


_PRIOR_TOPICS = 10


@dataclass(frozen=True)
class Moderator:
    """How an effect changes with a property of collections, for one standard deviation more of it."""

    name: str
    slope: float
    low: float
    high: float


def moderate(effects: ArrayLike, errors: ArrayLike, properties: Mapping[str, ArrayLike]) -> list[Moderator]:
    """Slopes of standardised properties, shrunk to 0: together they are expected to explain no more than tau.

    The prior of each slope is normal with the standard deviation tau / sqrt(number of properties); the constant has
    none. Intervals of .95. Properties that do not vary are excluded. Raises ResultsError below two collections.
    """
    values, variances = _checked(effects, errors)
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in properties.items()}
    columns = {name: (column - column.mean()) / column.std() for name, column in columns.items() if column.std() > 0}
    tau2 = between(values, variances)
    if not columns or tau2 == 0:
        return [Moderator(name, 0.0, 0.0, 0.0) for name in columns]
    design = np.column_stack([np.ones(len(values)), *columns.values()])
    weights = 1 / (variances + tau2)
    prior = np.diag([0.0, *[len(columns) / tau2] * len(columns)])
    covariance = np.linalg.inv(design.T * weights @ design + prior)
    slopes = covariance @ (design.T * weights @ values)
    sds = np.sqrt(np.diag(covariance))
    wide = 1.959964 * sds
    return [
        Moderator(name, float(slopes[i]), float(slopes[i] - wide[i]), float(slopes[i] + wide[i]))
        for i, name in enumerate(columns, start=1)
    ]


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


_STEADY = 20


def _checked(effects: ArrayLike, errors: ArrayLike) -> tuple[Floats, Floats]:
    """Effects and variances as arrays; a standard error of 0 becomes the smallest that differs from 0."""
    values, standard_errors = np.asarray(effects, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if values.shape != standard_errors.shape or values.ndim != 1 or len(values) < 2:
        raise ResultsError(f"effects are pooled over two collections or more, got {values.size}")
    if not (np.isfinite(values).all() and np.isfinite(standard_errors).all() and (standard_errors >= 0).all()):
        raise ResultsError("an effect or its standard error is not a finite number: measure that collection again")
    return values, np.maximum(standard_errors, _FLOOR) ** 2


def _i2(effects: Floats, variances: Floats) -> float:
    """The share of variance that is not sampling error (Higgins and Thompson, Statistics in Medicine 21, 2002)."""
    weights = 1 / variances
    mean = weights @ effects / weights.sum()
    q = float(weights @ (effects - mean) ** 2)
    return max(0.0, 1 - (len(effects) - 1) / q) if q > 0 else 0.0
