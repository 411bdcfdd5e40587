"""Percentiles of latency with intervals: whole queries are resampled, never single samples.

Repeats of a query are not independent, so the bootstrap draws queries with all their repeats (a cluster bootstrap;
Davison and Hinkley 1997, section 3.8). Few of forty queries lie beyond the 95th percentile, so a drawn query is also
shifted on the log scale by a normal deviate with Silverman's bandwidth (a smoothed bootstrap, ibid., section 3.4):
otherwise an interval of p95 could not reach beyond the slowest query and would cover too rarely. Differences of two
arms use the same draws for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LEVELS = (50.0, 95.0)
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

    Percentiles are taken by linear interpolation.
    """
    times = samples.of(tuple(dict.fromkeys(samples.qids)))
    drawn = _Draws(len(times), seed, resamples).percentiles(times)
    p50, p95, p99 = np.percentile(times, [*_LEVELS, 99])
    rest = {"p99": float(p99), "mean": float(times.mean())}
    return {**_with_intervals([p50, p95], drawn), **rest}


def weighted_sum(arms: Sequence[tuple[Samples, float]], seed: int = 13, resamples: int = 1000) -> Mapping[str, float]:
    """The weighted sum of p50 and p95 of arms in milliseconds, with 95% intervals; keys are those of `summary`.

    Weights of 1 and -1 give the difference of two arms. Only queries that all arms answered count; ValueError when
    there are none.
    """
    asked = set.intersection(*(set(samples.qids) for samples, _ in arms))
    common = tuple(dict.fromkeys(qid for qid in arms[-1][0].qids if qid in asked))
    if not common:
        raise ValueError("the arms were timed on different queries")
    draws = _Draws(len(common), seed, resamples)
    times = [(samples.of(common), weight) for samples, weight in arms]
    found = sum((weight * np.percentile(each, _LEVELS) for each, weight in times), np.zeros(len(_LEVELS)))
    drawn = sum((weight * draws.percentiles(each) for each, weight in times), np.zeros((len(_LEVELS), resamples)))
    return _with_intervals(found, drawn)


class _Draws:
    """The queries of each resample, and the shift of each."""

    def __init__(self, n_queries: int, seed: int, resamples: int) -> None:
        generator = np.random.default_rng(seed)
        self._queries = generator.integers(0, n_queries, (resamples, n_queries))
        self._moves = generator.standard_normal((resamples, n_queries, 1))

    def percentiles(self, times: Floats) -> Floats:
        """The percentiles of every resample of times (queries, repeats), shape (2, resamples)."""
        logs = np.log(np.maximum(times, _SHORTEST_MS))
        drawn = np.exp(logs[self._queries] + _bandwidth(logs.mean(axis=1)) * self._moves)
        found: Floats = np.percentile(drawn.reshape(len(drawn), -1), _LEVELS, axis=1)
        return found


def _bandwidth(values: Floats) -> float:
    """Silverman's rule of thumb (1986, 3.31)."""
    if len(values) < 2:
        return 0.0
    quartiles = np.percentile(values, [25, 75])
    spread = min(float(values.std(ddof=1)), float(quartiles[1] - quartiles[0]) / 1.349)
    return 0.9 * spread / float(len(values) ** 0.2)


def _with_intervals(found: Sequence[float] | Floats, drawn: Floats) -> dict[str, float]:
    rows: dict[str, float] = {}
    for level, value, draws in zip(_LEVELS, found, drawn, strict=True):
        name = f"p{level:g}"
        low, high = np.percentile(draws, [2.5, 97.5])
        # The interval contains the value; smoothed draws can miss it where most queries take the same time.
        rows |= {name: float(value), f"{name}_low": float(min(low, value)), f"{name}_high": float(max(high, value))}
    return rows
