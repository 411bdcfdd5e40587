"""Prediction-powered inference: a mean from few topics judged by annotators and many judged by a model.

The mean of the model's values is corrected by its error on the topics that both judged. The weight of the model
minimises the variance (PPI++; Angelopoulos, Duchi and Zrnic 2023): a useless model gets weight 0, which leaves
the mean of the annotators. Valid however bad the model is, as long as the annotators' topics are a random sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ragbench.base import minimums
from ragbench.base.errors import ResultsError
from ragbench.evidence.statistics import TIE


@dataclass(frozen=True)
class PoweredMean:
    """A mean with its interval. `weight` (0 to 1): of the model. `annotators` and `model`: the means of each alone.

    `annotators_low` and `annotators_high` bound the mean of their `n` topics; the model judged `n_model` others.
    """

    mean: float
    low: float
    high: float
    weight: float
    annotators: float
    annotators_low: float
    annotators_high: float
    model: float
    n: int
    n_model: int


def prediction_powered_mean(
    annotators: ArrayLike, model: ArrayLike, elsewhere: ArrayLike, confidence: float = 0.95
) -> PoweredMean:
    """The mean over topics: `annotators` and `model` (n,) for topics that both judged, `elsewhere` for others.

    Raises ResultsError for fewer than `minimums.HUMAN_GRADED` topics judged by annotators.
    """
    from scipy.special import stdtrit

    gold, model_same, model_rest = (np.asarray(values, dtype=np.float64) for values in (annotators, model, elsewhere))
    n, more = len(gold), len(model_rest)
    if n < minimums.HUMAN_GRADED:
        raise ResultsError(
            f"people judged {n} topics, and a model's grades count only next to {minimums.HUMAN_GRADED} or more: "
            "judge a larger sample"
        )
    others = float(np.var(model_rest, ddof=1)) / more if more > 1 else 0.0
    spread = float(np.var(model_same, ddof=1)) / n + others
    covariance = float(np.cov(gold, model_same, ddof=1)[0, 1]) / n
    weight = min(1.0, max(0.0, covariance / spread)) if more > 1 and spread > TIE**2 else 0.0
    shift = weight * (float(model_rest.mean()) - float(model_same.mean())) if weight else 0.0
    variance = float(np.var(gold - weight * model_same, ddof=1)) / n + weight**2 * others
    t = -float(stdtrit(n - 1, (1 - confidence) / 2))
    centre, alone = float(gold.mean()) + shift, float(gold.mean())
    reach, reach_alone = t * math.sqrt(variance), t * math.sqrt(float(np.var(gold, ddof=1)) / n)
    interval, interval_alone = (centre - reach, centre + reach), (alone - reach_alone, alone + reach_alone)
    naive = float(np.concatenate([model_same, model_rest]).mean())
    return PoweredMean(centre, *interval, weight, alone, *interval_alone, naive, n, more)
