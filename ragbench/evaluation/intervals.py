"""Percentiles of latency with intervals: queries count, never single samples.

Repeats of a query are not independent, so queries are drawn with all their repeats (a cluster bootstrap; Davison and
Hinkley 1997, section 3.8). For p50 a drawn query is also shifted on the log scale by a normal deviate with Silverman's
bandwidth (a smoothed bootstrap, ibid., section 3.4).

Of p95 a smoothed bootstrap knows too little: where a tenth of the queries is slow, it held the true value in .71 to .92
of samples. Its bounds are order statistics (Conover, "Practical Nonparametric Statistics", 1999, section 3.2): how many
of n queries lie above p95 is binomial, whatever the distribution. Fewer than `minimums.FOR_P95_CI` queries have no
upper bound, and no interval is given. The difference of arms resamples the same queries for both and takes their order
statistics, without smoothing, out to `_TAIL`, at which simulated intervals hold the true difference as often as they
say. `research/bench/test_interval_coverage.py` has the simulations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ragbench.base import minimums

Floats = NDArray[np.float64]

_LEVELS = (50.0, 95.0)
_CONFIDENCE = 0.95
_TAIL = 0.01
"""Share of the resampled differences of p95 beyond either bound."""
_SHORTEST_MS = 1e-6  # shorter than clocks can measure; the logarithm needs a positive number


@dataclass(frozen=True)
class Samples:
    """Milliseconds of shape (n,), `ms[i]` of the query `qids[i]`; every query has the same number of them."""

    qids: Sequence[str]
    ms: Floats

    def of(self, qids: Sequence[str]) -> Floats:
        """The milliseconds of some queries, shape (queries, repeats)."""
        rows: dict[str, list[float]] = {qid: [] for qid in qids}
        for qid, ms in zip(self.qids, self.ms.tolist(), strict=True):
            if qid in rows:
                rows[qid].append(ms)
        return np.array(list(rows.values()), dtype=np.float64)


def summary(samples: Samples, seed: int = 13, resamples: int = 1000) -> Mapping[str, float]:
    """p50, p95, p99 and mean, and 95% intervals of the first two (`p50_low`, `p50_high` ...), in milliseconds.

    Percentiles are taken by linear interpolation. Bounds of p95 are NaN for fewer than `minimums.FOR_P95_CI` queries.
    """
    times = samples.of(tuple(dict.fromkeys(samples.qids)))
    p50, p95, p99 = np.percentile(times, [*_LEVELS, 99])
    drawn = _Draws(len(times), seed, resamples).medians(times)
    bounds = [*np.percentile(drawn, [2.5, 97.5]), *_p95_bounds(times)]
    return {**_with_intervals([p50, p95], bounds), "p99": float(p99), "mean": float(times.mean())}


def weighted_sum(arms: Sequence[tuple[Samples, float]], seed: int = 13, resamples: int = 1000) -> Mapping[str, float]:
    """The weighted sum of p50 and p95 of arms in milliseconds, with 95% intervals; keys are those of `summary`.

    Weights of 1 and -1 give the difference of two arms. Only queries that all arms answered count; ValueError when
    there are none.
    """
    qids = set.intersection(*(set(samples.qids) for samples, _ in arms))
    common = tuple(dict.fromkeys(qid for qid in arms[-1][0].qids if qid in qids))
    if not common:
        raise ValueError("the arms were timed on different queries")
    draws = _Draws(len(common), seed, resamples)
    times = [(samples.of(common), weight) for samples, weight in arms]
    quantiles = sum((weight * np.percentile(samples, _LEVELS) for samples, weight in times), np.zeros(len(_LEVELS)))
    medians, slow = (
        sum((weight * of(samples) for samples, weight in times), np.zeros(resamples))
        for of in (draws.medians, draws.slow)
    )
    slow_bounds = (
        np.percentile(slow, [100 * _TAIL, 100 - 100 * _TAIL])
        if len(common) >= minimums.FOR_P95_CI
        else (np.nan, np.nan)
    )
    return _with_intervals(quantiles, [*np.percentile(medians, [2.5, 97.5]), *slow_bounds])


def _p95_bounds(times: Floats) -> tuple[float, float]:
    """Order statistics that hold p95 between them, of times (queries, repeats); NaN for fewer than 72 queries.

    With repeats the bounds are those of as many queries asked once: of equal repeats they are the same.
    """
    queries, repeats = times.shape
    if queries < minimums.FOR_P95_CI:
        return np.nan, np.nan
    low, high = _places(queries)
    ordered = np.sort(times, axis=None)
    return float(ordered[low * repeats - 1]), float(ordered[(high - 1) * repeats])


def p95_at_least(samples: Samples) -> float:
    """The lower bound of p95 alone, which any number of queries bears; of a single query its fastest time."""
    times = samples.of(tuple(dict.fromkeys(samples.qids)))
    return float(np.sort(times, axis=None)[_lowest(len(times)) * times.shape[1] - 1]) if len(times) > 1 else times.min()


def _lowest(n: int) -> int:
    """The place (from 1) of the highest order statistic that lies above p95 with at most 2.5%; n >= 2."""
    return int(np.count_nonzero(_at_most(n) <= (1 - _CONFIDENCE) / 2))


@lru_cache(maxsize=64)
def _at_most(n: int) -> Floats:
    """The chance that at most k of `n` queries are below p95, for k from 0 to n: a binomial distribution."""
    p, logs = _LEVELS[1] / 100, np.cumsum(np.log(np.arange(1, n + 1)))
    factorials = np.concatenate([[0.0], logs])
    k = np.arange(n + 1)
    return np.cumsum(np.exp(factorials[n] - factorials - factorials[::-1] + k * np.log(p) + (n - k) * np.log(1 - p)))


@lru_cache(maxsize=64)
def _places(n: int) -> tuple[int, int]:
    """The ranks (from 1) of the order statistics that bound p95 at 95% confidence, for n >= `minimums.FOR_P95_CI`.

    The l-th is above p95 if fewer than l of n are below it; the u-th is below it if at least u do.
    """
    tail, low = (1 - _CONFIDENCE) / 2, _lowest(n)
    high = min(rank for rank in range(low, n + 1) if 1 - _at_most(n)[rank - 1] <= tail)
    return low, high


class _Draws:
    """The queries of each resample, and the shift of each."""

    def __init__(self, n_queries: int, seed: int, resamples: int) -> None:
        generator = np.random.default_rng(seed)
        self._queries = generator.integers(0, n_queries, (resamples, n_queries))
        self._moves = generator.standard_normal((resamples, n_queries, 1))

    def medians(self, times: Floats) -> Floats:
        """p50 of every resample of times (queries, repeats), smoothed, shape (resamples,)."""
        logs = np.log(np.maximum(times, _SHORTEST_MS))
        drawn = np.exp(logs[self._queries] + _bandwidth(logs.mean(axis=1)) * self._moves)
        return np.asarray(np.median(drawn.reshape(len(drawn), -1), axis=1), dtype=np.float64)

    def slow(self, times: Floats) -> Floats:
        """The order statistic at p95 of every resample of times, shape (resamples,)."""
        drawn = times[self._queries].reshape(len(self._queries), -1)
        return np.asarray(np.percentile(drawn, _LEVELS[1], axis=1, method="inverted_cdf"), dtype=np.float64)


def _bandwidth(values: Floats) -> float:
    """Silverman's rule of thumb (1986, 3.31)."""
    if len(values) < 2:
        return 0.0
    quartiles = np.percentile(values, [25, 75])
    spread = min(float(values.std(ddof=1)), float(quartiles[1] - quartiles[0]) / 1.349)
    return 0.9 * spread / float(len(values) ** 0.2)


def _with_intervals(values: Sequence[float] | Floats, bounds: Sequence[float]) -> dict[str, float]:
    """The values of `_LEVELS` with their bounds, low and high of each in turn; an interval contains its value."""
    rows: dict[str, float] = {}
    for level, value, low, high in zip(_LEVELS, values, bounds[::2], bounds[1::2], strict=True):
        name = f"p{level:g}"
        rows |= {name: float(value), f"{name}_low": float(np.minimum(low, value))}
        rows[f"{name}_high"] = float(np.maximum(high, value))
    return rows
