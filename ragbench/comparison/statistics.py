"""How sure a difference between two arms is, paired over queries.

The interval is the percentile bootstrap, expanded for the number of queries (Hesterberg, "What Teachers Should Know
About the Bootstrap", American Statistician 2015): on differences as nDCG has them it covers the truth nearer to 95%
than BCa, whose correction for skew is itself noisy where many differences are ties. The test is the paired
randomisation test (Fisher; Smucker, Allan and Carterette, CIKM 2007) with p = (b + 1) / (m + 1) (Phipson and Smyth
2010), enumerated completely where that is no more work than sampling. Families of tests are corrected by Holm (Scand.
J. Statistics 1979). The minimum detectable effect is that of the paired t test, which the randomisation test
approaches. Everything is drawn from the given seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragbench.errors import BenchmarkError, ConfigError

Floats = NDArray[np.float64]

TIE = 1e-9
"""Differences up to this size are ties: they come from adding floats in another order, not from a ranking."""

_CELLS = 4_000_000  # of one block of draws: bounds memory to some 100 MB however many queries there are
_DIGITS = 12  # results are rounded so that the order in which a matrix product adds up leaves no trace


@dataclass(frozen=True)
class Comparison:
    """A candidate against a baseline over the same `n` queries; `difference` is candidate minus baseline.

    `ci_low`/`ci_high` bound the mean difference at `confidence`; `p_value` is two-sided and not corrected; `wins`,
    `ties`, `losses` count queries; `sd` is the standard deviation of the differences (NaN for one query); `mde` is the
    smallest true difference that 80% of such comparisons would find (infinite for one query).
    """

    n: int
    mean_candidate: float
    mean_baseline: float
    difference: float
    ci_low: float
    ci_high: float
    p_value: float
    wins: int
    ties: int
    losses: int
    sd: float
    mde: float
    confidence: float = 0.95


def align(values: Mapping[str, Mapping[str, float]]) -> tuple[tuple[str, ...], dict[str, Floats]]:
    """Values of arms by qid as arrays over the same sorted qids; refuses arms that answered different queries."""
    qids = tuple(sorted(next(iter(values.values()), {})))
    for arm, by_qid in values.items():
        if odd := sorted(set(by_qid).symmetric_difference(qids)):
            raise BenchmarkError(
                f"arm '{arm}' and arm '{next(iter(values))}' do not share query '{odd[0]}'; "
                "compare arms over the same queries"
            )
    return qids, {arm: np.array([by_qid[qid] for qid in qids], dtype=np.float64) for arm, by_qid in values.items()}


def compare(
    candidate: ArrayLike,
    baseline: ArrayLike,
    *,
    seed: int,
    resamples: int = 10_000,
    permutations: int = 10_000,
    confidence: float = 0.95,
    family: int = 1,
) -> Comparison:
    """Compare two arms; `candidate[i]` and `baseline[i]`, shape (n,), belong to the same query.

    `family` is the number of comparisons made together: the minimum detectable effect is that of the strictest of
    Holm's steps, at (1 - confidence) / family. Raises BenchmarkError for values that cannot be paired.
    """
    return compare_all(
        np.asarray(candidate, dtype=np.float64)[np.newaxis],
        np.asarray(baseline, dtype=np.float64)[np.newaxis],
        seed=seed,
        resamples=resamples,
        permutations=permutations,
        confidence=confidence,
        family=family,
    )[0]


def compare_all(
    candidates: ArrayLike,
    baselines: ArrayLike,
    *,
    seed: int,
    resamples: int = 10_000,
    permutations: int = 10_000,
    confidence: float = 0.95,
    family: int | None = None,
) -> list[Comparison]:
    """Compare row by row, shapes (k, n), all rows from the same draws; each row's result is that of `compare`.

    `family` is k when not given.
    """
    candidate, baseline = np.asarray(candidates, dtype=np.float64), np.asarray(baselines, dtype=np.float64)
    _check(candidate, baseline, resamples, permutations, confidence)
    differences = candidate - baseline
    differences[np.abs(differences) <= TIE] = 0.0
    k, n = differences.shape
    lows, highs = bootstrap_intervals(differences, seed=seed, resamples=resamples, confidence=confidence)
    p_values = randomisation_test(differences, seed=seed, permutations=permutations)
    sds = differences.std(axis=1, ddof=1) if n > 1 else np.full(k, np.nan)
    return [
        Comparison(
            n=n,
            mean_candidate=_rounded(candidate[row].mean()),
            mean_baseline=_rounded(baseline[row].mean()),
            difference=_rounded(differences[row].mean()),
            ci_low=_rounded(lows[row]),
            ci_high=_rounded(highs[row]),
            p_value=float(p_values[row]),
            wins=int((differences[row] > 0).sum()),
            ties=int((differences[row] == 0).sum()),
            losses=int((differences[row] < 0).sum()),
            sd=_rounded(sds[row]),
            mde=_rounded(
                minimum_detectable_effect(sds[row], n, confidence=confidence, family=k if family is None else family)
            ),
            confidence=confidence,
        )
        for row in range(k)
    ]


def bootstrap_intervals(
    differences: Floats, *, seed: int, resamples: int = 10_000, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Expanded percentile intervals of the mean of each row; `differences` (k, n) -> lower and upper bounds (k,), (k,).

    A point for one query.
    """
    from scipy.special import ndtr, stdtrit  # scipy.stats has both and takes three times as long to import

    k, n = differences.shape
    if n == 1:
        return differences[:, 0], differences[:, 0]
    generator = np.random.default_rng([seed, 0])
    means = np.empty((resamples, k))
    for start, stop in _blocks(resamples, n):
        drawn = generator.integers(n, size=(stop - start, n)) + np.arange(stop - start)[:, np.newaxis] * n
        counts = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
        means[start:stop] = counts.astype(np.float64) @ differences.T / n
    tail = ndtr(np.sqrt(n / (n - 1)) * stdtrit(n - 1, (1 - confidence) / 2))
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low, high


def randomisation_test(differences: Floats, *, seed: int, permutations: int = 10_000) -> Floats:
    """Two-sided paired randomisation p values of the rows of `differences`; (k, n) -> (k,), each in (0, 1].

    Under the null each query's difference may as well have the other sign. p = (b + 1) / (m + 1), b of m sign patterns
    giving a mean at least as far from 0 as the observed one. Ties have no sign, so where the other queries have at most
    `permutations` patterns besides the observed one, m is all of those and p is exact.
    """
    k, n = differences.shape
    observed = np.abs(differences.sum(axis=1))
    threshold = observed - 1e-12 * np.abs(differences).sum(axis=1)
    moved = (differences != 0).sum(axis=1)
    few = moved <= (permutations + 1).bit_length() - 1
    p_values = np.empty(k)
    for row in np.flatnonzero(few):
        values = differences[row][differences[row] != 0]
        patterns = (np.arange(2 ** len(values))[:, np.newaxis] >> np.arange(len(values))) & 1
        p_values[row] = (np.abs((2.0 * patterns - 1) @ values) >= threshold[row]).mean()
    if not few.all():
        generator = np.random.default_rng([seed, 1])
        as_far = np.zeros(int((~few).sum()), dtype=np.int64)
        for start, stop in _blocks(permutations, n):
            signs = 2.0 * generator.integers(2, size=(stop - start, n), dtype=np.int8) - 1
            as_far += (np.abs(signs @ differences[~few].T) >= threshold[~few]).sum(axis=0)
        p_values[~few] = (as_far + 1) / (permutations + 1)
    return p_values


def holm(p_values: Sequence[float] | Floats) -> Floats:
    """Holm's step-down adjustment of a family of p values, in the order given; capped at 1."""
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = (len(values) - np.arange(len(values))) * values[order]
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(values) else steps
    return adjusted


def minimum_detectable_effect(
    sd: float, n: int, *, confidence: float = 0.95, power: float = 0.8, family: int = 1
) -> float:
    """The smallest true mean difference that a paired comparison of `n` queries finds with probability `power`.

    `sd` is the standard deviation of the differences; before an experiment take it from an earlier one (0.1 to 0.2 is
    usual for nDCG@10). Two-sided t test at (1 - confidence) / family. Infinite for fewer than two queries.
    """
    return float("inf") if n < 2 else float(sd) * _detectable_sds(n, (1 - confidence) / family, power)


def queries_needed(effect: float, sd: float, *, confidence: float = 0.95, power: float = 0.8, family: int = 1) -> int:
    """How many queries find a true mean difference of `effect` with probability `power`; at least 2."""
    if not effect > 0:
        raise ConfigError(f"the effect to detect must be greater than 0, got {effect:g}")

    def finds(n: int) -> bool:
        return minimum_detectable_effect(sd, n, confidence=confidence, power=power, family=family) <= effect

    high = 2
    while not finds(high):
        high *= 2
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if finds(middle) else (middle + 1, high)
    return high


@lru_cache(maxsize=1024)
def _detectable_sds(n: int, alpha: float, power: float) -> float:
    """The minimum detectable effect in standard deviations: the noncentrality at which the t test has the power.

    Significance in the wrong direction does not count as found.
    """
    from scipy.special import nctdtrinc, stdtrit

    critical = -stdtrit(n - 1, alpha / 2)
    return float(nctdtrinc(n - 1, 1 - power, critical)) / float(np.sqrt(n))


def _check(candidate: Floats, baseline: Floats, resamples: int, permutations: int, confidence: float) -> None:
    if candidate.shape != baseline.shape or candidate.ndim != 2 or candidate.shape[1] == 0:
        raise BenchmarkError(
            f"values of shape {candidate.shape} and {baseline.shape} cannot be paired; "
            "give both arms one value for each of the same queries, at least one"
        )
    if not (np.isfinite(candidate).all() and np.isfinite(baseline).all()):
        raise BenchmarkError("a value to compare is not a finite number; give every query a value in both arms")
    for name, value in (("resamples", resamples), ("permutations", permutations)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, got {value}")
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence must be between 0 and 1, got {confidence:g}")


def _blocks(draws: int, n: int) -> Iterator[tuple[int, int]]:
    step = max(1, _CELLS // n)
    for start in range(0, draws, step):
        yield start, min(draws, start + step)


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS) + 0.0  # no negative zero
