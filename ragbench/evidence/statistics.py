"""Significance of differences between arms: one family of paired comparisons with one critical value.

The statistic of a row of differences is the t of its mean (`ragbench.evidence.t_statistic`). The distribution of the
largest statistic of a family under the null comes from flipping the signs of whole queries and from resampling queries
(`ragbench.evidence.max_t`). p is adjusted for the family, and an interval contains the means that are not rejected
at the critical value; all intervals of a family hold together at the stated confidence. A claim of "not worse" uses a
one-sided bound of one comparison alone, so that it does not weaken with the number of arms.

Resampling cannot show a loss that is too rare to be in the sample. Values between 0 and 1 bound that risk: every
interval also contains the mean after `UNSEEN` more queries that lose (or gain) everything, so that it excludes 0 only
if such queries would not reverse the sign. `tools/bench/rare_losses.py` has the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragbench.base import minimums
from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.evidence import max_t, t_statistic

_Floats = NDArray[np.float64]

UNSEEN = (2, 3)
"""Queries that lose everything, beyond those measured, that an interval allows for: below 60 queries, and from there.

Three are the rule of three, 95% confidence that a kind of queries that did not occur is rarer than 3 / n. Below 60
queries the third would cost much power. `research/bench/rare_losses.py` compares."""

_BETS = np.linspace(0.05, 0.95, 19)
"""The fractions that `_e_values` averages over."""

TIE = 1e-9
"""Differences up to this size are ties: they come from the order of float additions, not from a ranking."""

POWER = 0.8
_DRAWS = 1_000
_STEPS = 16  # of a bisection from eight standard deviations: to a ten-thousandth of one

_DIGITS = 12  # results are rounded, so that they do not depend on the order in which a matrix product adds up


@dataclass(frozen=True)
class Contrast:
    """Weighted arms against weighted arms: an arm against its base, the effect of a factor, an interaction of two.

    `plus` and `minus` are weights by arm.
    """

    factors: tuple[str, ...]
    plus: Mapping[str, float]
    minus: Mapping[str, float]

    @staticmethod
    def of(arm: str, base: str) -> Contrast:
        """One arm against another."""
        return Contrast((arm,), {arm: 1.0}, {base: 1.0})

    @property
    def weights(self) -> dict[str, float]:
        """The weight of every arm: the one in `plus` minus the one in `minus`."""
        weights = dict(self.plus)
        for arm, weight in self.minus.items():
            weights[arm] = weights.get(arm, 0.0) - weight
        return weights


@dataclass(frozen=True)
class Comparison:
    """A candidate against a baseline over the same `n` queries; `difference` is candidate minus baseline.

    `ci_low` and `ci_high` bound the mean difference at `confidence`, together with all other comparisons of the family;
    `narrow_low` and `narrow_high` do so at 1 - 2 (1 - confidence), for two one-sided tests. `at_least` is the one-sided
    lower bound of this comparison alone, whatever the size of the family. All five are NaN below three queries.
    `p_value` is two-sided and adjusted for the family. `robust` is False where the sign would not survive `UNSEEN` more
    queries, or if a gain over fewer than `minimums.WITHOUT_BOUND` queries has no e-value of 2 k / (1 - confidence).
    `wins`, `ties`, `losses` count queries. `sd` is the standard deviation of the differences. `mde` is the smallest
    true difference that 80% of such comparisons find; NaN where that cannot be said.
    """

    n: int
    mean_candidate: float
    mean_baseline: float
    difference: float
    ci_low: float
    ci_high: float
    narrow_low: float
    narrow_high: float
    p_value: float
    wins: int
    ties: int
    losses: int
    sd: float
    mde: float
    confidence: float = 0.95
    at_least: float = np.nan
    robust: bool = True

    @property
    def significant(self) -> bool:
        """Whether the difference is significant at the confidence of the family, and robust."""
        return self.robust and bool(_is_small(self.p_value, self.confidence))


def compare(
    candidate: ArrayLike, baseline: ArrayLike, *, seed: int, draws: int = 10_000, confidence: float = 0.95
) -> Comparison:
    """Compare two arms; `candidate[i]` and `baseline[i]`, shape (n,), belong to the same query."""
    ours, theirs = (np.asarray(values, dtype=np.float64)[np.newaxis] for values in (candidate, baseline))
    return compare_all(ours, theirs, seed=seed, draws=draws, confidence=confidence)[0]


def compare_all(
    candidates: ArrayLike,
    baselines: ArrayLike,
    *,
    seed: int,
    draws: int = 10_000,
    confidence: float = 0.95,
) -> list[Comparison]:
    """Compare row by row, shapes (k, n), as one family; a column is one query in every row.

    NaN in both means that the row has no value for the query. Raises BenchmarkError for values that cannot be paired.
    """
    candidate, baseline = np.asarray(candidates, dtype=np.float64), np.asarray(baselines, dtype=np.float64)
    _check(candidate, baseline, draws, confidence)
    present, differences, n = _paired(candidate, baseline)
    p_values, by_chance = _tested(differences, present, seed, draws, per_row=True)
    size = (int(n.max()), len(n))
    wide, narrow = (max_t.critical(by_chance, level, *size) for level in (1 - confidence, 2 - 2 * confidence))
    lows, highs = t_statistic.bounds(differences, n, *wide)
    narrow_lows, narrow_highs = t_statistic.bounds(differences, n, *narrow)
    one_sided = max_t.critical_alone(by_chance.per_row, 1 - confidence, n)
    at_least, _ = t_statistic.bounds(differences, n, one_sided, one_sided)
    bounded = _bounded(candidate, baseline)
    total = differences.sum(axis=1)
    more = np.where(n < 60, *UNSEEN) if bounded else np.zeros(len(n))
    robust = _robust(differences, n, confidence, bounded)
    if bounded:
        lows = np.clip(np.minimum(lows, (total - more) / (n + more)), -1, 1)
        highs = np.clip(np.maximum(highs, (total + more) / (n + more)), -1, 1)
        at_least = np.clip(np.minimum(at_least, (total - 1) / (n + 1)), -1, 1)
        # At most this share of all queries is of a kind that n queries did not show, at the confidence of one side.
        unseen = 1 - (1 - confidence) ** (1 / n)
        narrow_lows = np.clip(np.minimum(narrow_lows, total / n - unseen), -1, 1)
        narrow_highs = np.clip(np.maximum(narrow_highs, total / n + unseen), -1, 1)
    mdes = detectable_effects(differences, present, wide, seed=seed, least=more)
    return [
        Comparison(
            n=int(mask.sum()),
            mean_candidate=_round(candidate[row][mask].mean()),
            mean_baseline=_round(baseline[row][mask].mean()),
            difference=_round(differences[row].sum() / n[row]),
            ci_low=_round(lows[row]),
            ci_high=_round(highs[row]),
            narrow_low=_round(narrow_lows[row]),
            narrow_high=_round(narrow_highs[row]),
            p_value=float(p_values[row]),
            wins=int((differences[row] > 0).sum()),
            ties=int((differences[row][mask] == 0).sum()),
            losses=int((differences[row] < 0).sum()),
            sd=_round(differences[row][mask].std(ddof=1)) if n[row] > 1 else np.nan,
            mde=_round(mdes[row]),
            confidence=confidence,
            at_least=_round(at_least[row]),
            robust=bool(robust[row]),
        )
        for row, mask in enumerate(present)
    ]


def significant(
    candidates: ArrayLike, baselines: ArrayLike, *, seed: int, draws: int = 10_000, confidence: float = 0.95
) -> NDArray[np.bool_]:
    """Whether each row of shapes (k, n) differs, shape (k,): `Comparison.significant`, without intervals.

    It needs NumPy alone, so that a gate without intervals installs no SciPy.
    """
    candidate, baseline = np.asarray(candidates, dtype=np.float64), np.asarray(baselines, dtype=np.float64)
    _check(candidate, baseline, draws, confidence)
    present, differences, n = _paired(candidate, baseline)
    p_values, _ = _tested(differences, present, seed, draws, per_row=False)
    return _is_small(p_values, confidence) & _robust(differences, n, confidence, _bounded(candidate, baseline))


def _paired(candidate: _Floats, baseline: _Floats) -> tuple[NDArray[np.bool_], _Floats, NDArray[np.int_]]:
    """Where rows have values, their differences without ties, and how many they have."""
    present = ~np.isnan(candidate)
    differences = np.where(present, candidate - baseline, 0.0)
    differences[np.abs(differences) <= TIE] = 0.0
    return present, differences, present.sum(axis=1)


def _tested(
    differences: _Floats, present: NDArray[np.bool_], seed: int, draws: int, *, per_row: bool
) -> tuple[_Floats, max_t.Chance]:
    """p of every row, adjusted for the family, and the distribution that it comes from."""
    n = present.sum(axis=1)
    observed = t_statistic.statistic(n, *t_statistic.sums(differences), t_statistic.floor(differences, n))
    by_chance = max_t.simulate(differences, present, seed, draws, per_row=per_row)
    return max_t.p_values(observed, by_chance), by_chance


def _is_small(p_values: ArrayLike, confidence: float) -> NDArray[np.bool_]:
    return np.asarray(p_values) <= 1 - confidence + 1e-12


def _bounded(candidate: _Floats, baseline: _Floats) -> bool:
    return bool(np.nanmin([candidate, baseline]) >= 0 and np.nanmax([candidate, baseline]) <= 1)


def _robust(differences: _Floats, n: NDArray[np.int_], confidence: float, bounded: bool) -> NDArray[np.bool_]:
    """Whether the sign of each row survives `UNSEEN` more queries, and small samples have enough evidence of a gain."""
    if not bounded:
        return np.ones(len(n), dtype=bool)
    total, large = differences.sum(axis=1), _e_values(differences) >= 2 * len(n) / (1 - confidence)
    sure = (total < 0) | (n >= minimums.WITHOUT_BOUND) | large
    return np.asarray((np.abs(total) > np.where(n < 60, *UNSEEN)) & sure)


def _e_values(differences: _Floats) -> _Floats:
    """Evidence against a mean of at most 0 for rows of differences in [-1, 1], (k, n): shape (k,).

    The average over `_BETS` of the wealth after betting that share on each query (Waudby-Smith and Ramdas, JRSS B 86,
    2024). Under the null its mean is at most 1, whatever the distribution, so 1 / e is a valid p at every n.
    """
    wealth = np.log1p(_BETS[:, np.newaxis, np.newaxis] * differences).sum(axis=2)
    return np.asarray(np.exp(wealth).mean(axis=0))


def _check(candidate: _Floats, baseline: _Floats, draws: int, confidence: float) -> None:
    if candidate.shape != baseline.shape or candidate.ndim != 2 or candidate.shape[1] == 0:
        raise BenchmarkError(
            f"values of shape {candidate.shape} and {baseline.shape} cannot be paired; "
            "give both arms one value for each of the same queries, at least one"
        )
    missing = np.isnan(candidate)
    if (missing != np.isnan(baseline)).any() or np.isinf(candidate).any() or np.isinf(baseline).any():
        raise BenchmarkError("a value to compare is not a finite number; give every query a value in both arms")
    if missing.all(axis=1).any():
        raise BenchmarkError("a comparison has no query with a value in both arms; give it at least one")
    if draws < 1:
        raise ConfigError(f"statistics.draws must be at least 1, got {draws}")
    if not 0.5 < confidence < 1:
        raise ConfigError(f"statistics.confidence must be above 0.5 and below 1, got {confidence:g}")


def _round(value: float) -> float:
    return round(float(value), _DIGITS) + 0.0  # no negative zero


def detectable_effects(
    differences: _Floats,
    present: NDArray[np.bool_],
    critical: tuple[float, float],
    *,
    seed: int,
    least: _Floats | float = 0.0,
) -> _Floats:
    """For every row of (k, n), the true mean difference that exceeds `critical` in 80% of bootstrap experiments.

    `critical` are those of positive and of negative effects; `least` is the sum over queries that a sample of each row
    must exceed.

    An experiment resamples queries, ties included; an effect shifts every query that is not a tie. The direction
    that is harder to find counts: with the mean of both directions, only 73 to 79% of the experiments in
    `research/bench/promises.py` find it. NaN for rows with fewer than `minimums.FOR_MDE` queries or changed queries.
    """
    n, changed = present.sum(axis=1), (differences != 0).sum(axis=1)
    floors = t_statistic.floor(differences, n)
    enough = (n >= minimums.FOR_MDE) & (changed >= minimums.FOR_MDE)
    effects = np.full(len(differences), np.nan)
    if not enough.any():
        return effects
    rows, n = differences[enough], n[enough][:, np.newaxis]
    centred = _with_zero_mean(rows)
    parts = [
        (centred @ block, centred**2 @ block, (rows != 0) @ block, present[enough] @ block)
        for block in max_t.resamples(rows.shape[1], len(rows), _DRAWS, seed)
    ]
    first, second, moved, size = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    share = (rows != 0).sum(axis=1, keepdims=True) / n
    floor, sums_at_least = (
        floors[enough][:, np.newaxis],
        np.broadcast_to(least, len(differences))[enough][:, np.newaxis],
    )

    def power(effect: _Floats, *, sign: float) -> _Floats:
        """The share of experiments that find an effect of this size and sign, by row."""
        step = sign * effect[:, np.newaxis] / share
        sums = (first + step * moved, second + 2 * step * first + step**2 * moved)
        z = t_statistic.statistic(np.maximum(size, 1.0), *sums, floor)
        significant = (sign * z > critical[0 if sign > 0 else 1]) & (sign * sums[0] > sums_at_least)
        return np.asarray(significant.mean(axis=1))

    spread = np.sqrt((rows**2).sum(axis=1) / n[:, 0])
    either = [_least(partial(power, sign=sign), spread) for sign in (1.0, -1.0)]
    effects[enough] = np.maximum(*either)
    return effects


def _least(power: Callable[[_Floats], _Floats], start: _Floats) -> _Floats:
    """The least effect with the wanted power, by bisection from 0 to eight standard deviations."""
    low, high = np.zeros_like(start), 8.0 * start
    for _ in range(_STEPS):
        middle = (low + high) / 2
        reached = power(middle) >= POWER
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def _with_zero_mean(differences: _Floats) -> _Floats:
    """The rows with mean 0 and the same ties: all other differences are shifted by the same amount."""
    changed = differences != 0
    shift = differences.sum(axis=1, keepdims=True) / np.maximum(changed.sum(axis=1, keepdims=True), 1)
    return np.where(changed, differences - shift, 0.0)


def minimum_detectable_effect(sd: float, n: int, *, confidence: float = 0.95, family: int = 1) -> float:
    """The smallest true mean difference that a paired t test of `n` queries finds with probability `POWER`.

    For planning: `sd` is the standard deviation of the differences, from an earlier experiment (0.1 to 0.2 is usual for
    nDCG@10). Two-sided at (1 - confidence) / family. Infinite for fewer than two queries.
    """
    return float("inf") if n < 2 else float(sd) * _detectable_sds(n, (1 - confidence) / family)


def queries_needed(effect: float, sd: float, *, confidence: float = 0.95, family: int = 1) -> int:
    """How many queries find a true mean difference of `effect` with probability `POWER`; at least 2."""
    if not effect > 0:
        raise ConfigError(f"the effect to detect must be greater than 0, got {effect:g}")

    def finds(n: int) -> bool:
        return minimum_detectable_effect(sd, n, confidence=confidence, family=family) <= effect

    high = 2
    while not finds(high):
        high *= 2
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if finds(middle) else (middle + 1, high)
    return high


@lru_cache(maxsize=1024)
def _detectable_sds(n: int, alpha: float) -> float:
    """The minimum detectable effect in standard deviations: the noncentrality at which the t test has `POWER`.

    Significance in the wrong direction does not count as found.
    """
    from scipy.special import nctdtrinc, stdtrit

    critical = -stdtrit(n - 1, alpha / 2)
    return float(nctdtrinc(n - 1, 1 - POWER, critical)) / float(np.sqrt(n))
