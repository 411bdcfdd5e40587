"""What the pages of the atlas show of effects on many collections, beyond what a prediction needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ragbench.base import minimums
from ragbench.extras.atlas import meta
from ragbench.extras.atlas.changes import BASE
from ragbench.extras.atlas.meta import Floats, Pooled, between, checked
from ragbench.extras.atlas.tables import Atlas

_MODERATORS = ("documents", "median_words", "links_per_document", "code_share", "query_words")
_LOGARITHMIC = ("documents", "median_words", "links_per_document")


def interval(pooled: Pooled, sd: float, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a pooled effect: `sd` is its standard error, or that of the prediction for a new collection."""
    from scipy import stats

    wide = float(stats.t.ppf((1 + confidence) / 2, pooled.collections - 1))
    return pooled.effect - wide * sd, pooled.effect + wide * sd


def i2(effects: ArrayLike, errors: ArrayLike) -> float:
    """The share of variance that is not sampling error (Higgins and Thompson, Statistics in Medicine 21, 2002)."""
    values, variances = checked(effects, errors)
    return _i2(values, variances)


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
    values, variances = checked(effects, errors)
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


def moderators(atlas: Atlas, change: str, base: str = BASE) -> list[Moderator]:
    """How the effect of a change varies with the properties of collections."""
    frame = atlas.rows(change, base)
    if len(frame) < minimums.COLLECTIONS:
        return []
    properties: dict[str, Sequence[float]] = {
        name: np.log1p(frame[name]).tolist() if name in _LOGARITHMIC else frame[name].tolist() for name in _MODERATORS
    }
    properties["real user questions"] = (frame["questions"] == "people").astype(float).tolist()
    errors = meta.steadied(frame["error"].to_numpy(), frame["topics"].to_numpy())
    return moderate(frame["effect"].tolist(), errors.tolist(), properties)


def _i2(effects: Floats, variances: Floats) -> float:
    """The share of variance that is not sampling error (Higgins and Thompson, Statistics in Medicine 21, 2002)."""
    weights = 1 / variances
    mean = weights @ effects / weights.sum()
    q = float(weights @ (effects - mean) ** 2)
    return max(0.0, 1 - (len(effects) - 1) / q) if q > 0 else 0.0
