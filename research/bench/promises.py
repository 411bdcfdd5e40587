"""What the statistics promise, by simulation: family-wise errors, coverage and power.

    python -m research.bench.promises --null "like runs" --n 20 --n 50 --simulations 400

Without options all rows, two at a time: about half an hour. Its rows are the figures of docs/research/methods.md.
A family is 13 arms at two levels against one base; the differences of two arms correlate by .5, those of the two levels
of an arm by .7.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from unittest.mock import patch

import numpy as np
from scipy.stats import norm

from ragbench.evidence import statistics

ARMS = 13
DRAWS = 999
SIZES = (20, 50, 100, 200)

Sampler = Callable[[np.random.Generator, int], np.ndarray]


def correlated(generator: np.random.Generator, n: int) -> np.ndarray:
    """Standard normal, shape (2 * ARMS, n)."""
    base, arm = generator.standard_normal((1, 1, n)), generator.standard_normal((ARMS, 1, n))
    own = generator.standard_normal((ARMS, 2, n))
    return (np.sqrt(0.5) * base + np.sqrt(0.2) * arm + np.sqrt(0.3) * own).reshape(-1, n)


def like_runs() -> list[np.ndarray]:
    """For every row, 20,000 differences as ablations have them: 20 to 90% ties, mean 0, every second row skewed.

    In a skewed row two of three changes are small, the third is twice as large and the other way; half of these rows
    are mirrored. Skewness is 1 to 3, as that of the arms of `ragbench ablate +exp=all` reweighed to a mean of 0.
    """
    generator, rows = np.random.default_rng(5), []
    for row, ties in enumerate(np.linspace(0.2, 0.9, 2 * ARMS)):
        changed = generator.random(20_000) >= ties
        small, size = generator.random(20_000) < 2 / 3, generator.beta(0.9, 4.0, 20_000)
        skewed = np.where(small, size, -np.minimum(2 * size, 1.0))
        values = (skewed if row % 2 else size * generator.choice([-1.0, 1.0], 20_000)) * changed
        values[changed] -= values[changed].mean()
        rows.append(np.sort(-values if row % 4 == 3 else values))
    return rows


RUNS = like_runs()


def from_runs(generator: np.random.Generator, n: int) -> np.ndarray:
    places = (norm.cdf(correlated(generator, n)) * 20_000).astype(int)
    return np.stack([values[place] for values, place in zip(RUNS, places, strict=True)])


def sparse(generator: np.random.Generator, n: int) -> np.ndarray:
    """Laplace, six of ten queries ties."""
    u = norm.cdf(correlated(generator, n))
    tail = np.clip((np.abs(u - 0.5) - 0.3) / 0.2, 0.0, 1 - 1e-12)
    return -0.15 * np.sign(u - 0.5) * np.log1p(-tail) * (tail > 0)


def exponential(generator: np.random.Generator, n: int) -> np.ndarray:
    """Skewness 2, no ties; mirrored for every second arm."""
    values = 0.15 * (-np.log(norm.sf(correlated(generator, n))) - 1)
    values[2::4] *= -1
    values[3::4] *= -1
    return values


NULLS: dict[str, Sampler] = {
    "normal": lambda generator, n: 0.15 * correlated(generator, n),
    "Laplace, 60% ties": sparse,
    "exponential": exponential,
    "like runs": from_runs,
}


def moved(values: np.ndarray, effect: np.ndarray | float, share: np.ndarray) -> np.ndarray:
    """The same with another mean: queries that are no ties move."""
    return values + (values != 0) * np.reshape(effect, (-1, 1)) / share[:, np.newaxis]


def shares(null: str) -> np.ndarray:
    """How many of a row's queries change."""
    if null == "like runs":
        return np.array([(row != 0).mean() for row in RUNS])
    return np.full(2 * ARMS, 0.4 if "ties" in null else 1.0)


def rows_of(values: np.ndarray, seed: int, claims: bool = False):
    """The family of these differences; what is detectable takes most of the time, and only where it is asked for."""
    unknown = lambda differences, *_, **__: np.full(len(differences), np.nan)  # noqa: E731
    if claims:
        return statistics.compare_all(values, np.zeros_like(values), seed=seed, draws=DRAWS)
    with patch.object(statistics, "detectable_effects", unknown):
        return statistics.compare_all(values, np.zeros_like(values), seed=seed, draws=DRAWS)


def row_of(null: str, n: int, simulations: int) -> str:
    """Family-wise error, coverage where arms differ, and power where an effect is claimed to be detectable."""
    generator = np.random.default_rng(n)
    effects = np.tile([0.0, 0.0, 0.04, 0.04, -0.04, -0.02], ARMS)[: 2 * ARMS]
    share, sample = shares(null), NULLS[null]
    errors, pair_errors, covered, all_covered, found = [], [], [], [], []
    for seed in range(simulations):
        values = sample(generator, n)
        claiming = seed % 8 < 2
        family = rows_of(values, seed, claiming)
        errors.append(min(row.p_value for row in family) <= 0.05)
        if seed % 4 == 0:
            pair = 2 * int(generator.integers(ARMS))
            pair_errors.append(min(row.p_value for row in rows_of(values[pair : pair + 2], seed)) <= 0.05)
        shifted = rows_of(moved(values, effects, share), seed)
        inside = [row.ci_low <= truth <= row.ci_high for row, truth in zip(shifted, effects, strict=True)]
        covered.append(np.mean(inside))
        all_covered.append(all(inside))
        claims = [(place, row.mde) for place, row in enumerate(family) if not np.isnan(row.mde)]
        for number in range(3 if claims else 0):
            place, effect = claims[int(generator.integers(len(claims)))]
            truth = np.zeros(2 * ARMS)
            truth[place] = effect * (1 if (seed + number) % 2 else -1)
            again = rows_of(moved(sample(generator, n), truth, share), seed)[place]
            found.append(again.p_value <= 0.05 and (again.difference > 0) == (truth[place] > 0))
    power = f"{np.mean(found):.3f} of {len(found)}" if found else "withheld"
    return (
        f"| {null} | {n} | {np.mean(errors):.3f} | {np.mean(pair_errors):.3f} | "
        f"{np.mean(all_covered):.3f} | {np.mean(covered):.4f} | {power} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulate what the statistics promise.")
    parser.add_argument("--null", action="append", choices=list(NULLS))
    parser.add_argument("--n", action="append", type=int)
    parser.add_argument("--simulations", type=int, default=2_000)
    options = parser.parse_args()
    rows = list(product(options.null or NULLS, options.n or SIZES))
    print("| null | n | error of a family | of a pair | all covered | covered | power at the claim |")
    print("|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(2) as pool:
        for row in pool.map(row_of, *zip(*rows, strict=True), [options.simulations] * len(rows)):
            print(row, flush=True)


if __name__ == "__main__":
    main()
