"""Significance of differences between arms: one family of paired comparisons with one critical value.

The statistic of a row of differences is the t of its mean (`ragbench.evidence.t_of_mean`). The distribution of the
largest statistic of a family under the null comes from flipping the signs of whole queries and from resampling queries
(`ragbench.evidence.chance`). p is adjusted for the family, and an interval contains the means that are not rejected
at the critical value: it excludes 0 exactly when p <= 1 - confidence, and all intervals of a family hold together at
the stated confidence. Beside them stands the bound that a claim of "not worse" needs: one-sided, of one comparison
alone, so that it does not weaken with the number of arms. docs/methods.md has simulated family-wise errors, coverage
and power.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragbench.base.errors import BenchmarkError, ConfigError
from ragbench.evidence import chance, t_of_mean
from ragbench.evidence.power import detectable_effects

Floats = NDArray[np.float64]

TIE = 1e-9
"""Differences up to this size are ties: they come from the order of float additions, not from a ranking."""

_DIGITS = 12  # results are rounded, so that they do not depend on the order in which a matrix product adds up


@dataclass(frozen=True)
class Comparison:
    """A candidate against a baseline over the same `n` queries; `difference` is candidate minus baseline.

    `ci_low` and `ci_high` bound the mean difference at `confidence`, together with all other comparisons of the family;
    `narrow_low` and `narrow_high` do so at 1 - 2 (1 - confidence), for two one-sided tests. `at_least` is the one-sided
    lower bound of this comparison alone, whatever the size of the family. All five are NaN below three queries.
    `p_value` is two-sided and adjusted for the family. `wins`, `ties`, `losses` count queries. `sd` is the standard
    deviation of the differences. `mde` is the smallest true difference that 80% of such comparisons find; NaN where
    that cannot be said.
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
    alone: float | None = None,
) -> list[Comparison]:
    """Compare row by row, shapes (k, n), as one family; a column is one query in every row.

    `alone` is the confidence of `Comparison.at_least`, by default that of the family.
    NaN in both means that the row has no value for the query. Raises BenchmarkError for values that cannot be paired.
    """
    candidate, baseline = np.asarray(candidates, dtype=np.float64), np.asarray(baselines, dtype=np.float64)
    alone = confidence if alone is None else alone
    _check(candidate, baseline, draws, confidence)
    here = ~np.isnan(candidate)
    differences = np.where(here, candidate - baseline, 0.0)
    differences[np.abs(differences) <= TIE] = 0.0
    n = here.sum(axis=1)
    observed = t_of_mean.statistic(n, *t_of_mean.sums(differences), t_of_mean.floor(differences, n))
    by_chance = chance.simulate(differences, here, seed, draws, each=True)
    p_values = chance.p_values(observed, by_chance)
    size = (int(n.max()), len(n))
    wide, narrow = (chance.critical(by_chance, level, *size) for level in (1 - confidence, 2 - 2 * confidence))
    lows, highs = t_of_mean.bounds(differences, n, *wide)
    narrow_lows, narrow_highs = t_of_mean.bounds(differences, n, *narrow)
    surely = chance.critical_alone(by_chance.each, 1 - alone, n)
    at_least, _ = t_of_mean.bounds(differences, n, surely, surely)
    if np.nanmin([candidate, baseline]) >= 0 and np.nanmax([candidate, baseline]) <= 1:
        # Means of such values differ by at most 1; few topics do not tell that.
        lows, highs, narrow_lows, narrow_highs, at_least = np.clip(
            [lows, highs, narrow_lows, narrow_highs, at_least], -1, 1
        )
    mdes = detectable_effects(differences, here, wide, seed=seed)
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
        )
        for row, mask in enumerate(here)
    ]


def _check(candidate: Floats, baseline: Floats, draws: int, confidence: float) -> None:
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
