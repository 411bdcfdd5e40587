"""Whether intervals hold where a few queries lose a lot: coverage, family-wise error and power, by simulation.

    python -m research.bench.rare_losses
    python -m research.bench.rare_losses --rows 1 --n 30 --simulations 400

A family has `rows` comparisons against one base at one level (a run of two arms has one, or two with passages).
`coverage` is how often all intervals of a family hold the true means, `error` how often some difference is significant
where every true mean is 0. Allowances: no queries beyond those measured, one, two, three that lose or gain everything,
and `chosen`, what `compare_all` does. `power` is for a true +.08 in every row.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np

from ragbench.evidence import max_t, t_statistic
from ragbench.evidence.statistics import UNSEEN

Floats = np.ndarray
Generator = np.random.Generator
DRAWS, LEVEL, EFFECT = 999, 0.05, 0.08
SIZES, ROWS = (30, 60, 120), (1, 5, 19)


def rare_losses(generator: Generator, rows: int, n: int) -> tuple[Floats, Floats]:
    """2, 3, 4 or 5% of the queries lose .3 to 1, half of the others gain up to .05."""
    share = np.resize([0.02, 0.03, 0.04, 0.05], rows)[:, np.newaxis]
    lost, gained = generator.random((rows, n)) < share, generator.random((rows, n)) < 0.5
    gains = np.where(gained, generator.uniform(0, 0.05, (rows, n)), 0.0)
    mean = -share * 0.65 + (1 - share) * 0.0125
    return np.where(lost, -generator.uniform(0.3, 1, (rows, n)), gains), mean[:, 0]


def sparse_and_dense(generator: Generator, rows: int, n: int) -> tuple[Floats, Floats]:
    """Every second row: 3% of the queries lose .3 to 1 and the others tie; the rest: a standard deviation of .02."""
    sparse = np.arange(rows) % 2 == 0
    lost = (generator.random((rows, n)) < 0.03) * generator.uniform(0.3, 1, (rows, n))
    return np.where(sparse[:, np.newaxis], -lost, generator.normal(0, 0.02, (rows, n))), np.where(sparse, -0.0195, 0.0)


def ties(generator: Generator, rows: int, n: int) -> tuple[Floats, Floats]:
    """90% ties, the others with a standard deviation of .3."""
    changed = generator.random((rows, n)) < 0.1
    return np.where(changed, generator.normal(0, 0.3, (rows, n)).clip(-1, 1), 0.0), np.zeros(rows)


def skewed(generator: Generator, rows: int, n: int) -> tuple[Floats, Floats]:
    """Exponential with mean .1, centred."""
    return generator.exponential(0.1, (rows, n)).clip(0, 1) - 0.1 * (1 - np.exp(-10)), np.zeros(rows)


def heavy(generator: Generator, rows: int, n: int) -> tuple[Floats, Floats]:
    """Student's t with 2.2 degrees of freedom."""
    return (0.05 * generator.standard_t(2.2, (rows, n))).clip(-1, 1), np.zeros(rows)


def correlated(generator: Generator, rows: int, n: int) -> tuple[Floats, Floats]:
    """Normal, standard deviation .2, arms correlated by .9."""
    common, own = generator.normal(size=n), generator.normal(size=(rows, n))
    return (0.2 * (np.sqrt(0.9) * common + np.sqrt(0.1) * own)).clip(-1, 1), np.zeros(rows)


Draw = Callable[[Generator, int, int], tuple[Floats, Floats]]
POPULATIONS: dict[str, Draw] = {
    "rare losses": rare_losses,
    "sparse and dense": sparse_and_dense,
    "90% ties": ties,
    "skewed": skewed,
    "heavy tails": heavy,
    "correlated": correlated,
}


def bounds(differences: Floats, seed: int) -> tuple[Floats, Floats]:
    """The bounds of max-t, before any allowance."""
    k, n = differences.shape
    by_chance = max_t.simulate(differences, np.ones((k, n), dtype=bool), seed, DRAWS)
    return t_statistic.bounds(differences, np.full(k, n), *max_t.critical(by_chance, LEVEL, n, k))


def allowed(differences: Floats, low: Floats, high: Floats, more: int) -> tuple[Floats, Floats]:
    """The bounds with `more` queries that lose, or gain, everything."""
    total, n = differences.sum(axis=1), differences.shape[1]
    return np.minimum(low, (total - more) / (n + more)), np.maximum(high, (total + more) / (n + more))


def row_of(name: str, rows: int, n: int, simulations: int) -> str:
    """One line of the table."""
    generator = np.random.default_rng([7, n, rows, len(name)])
    allowances = {"0": 0, "1": 1, "2": 2, "3": 3, "chosen": UNSEEN[n >= 60]}
    counts = {key: np.zeros(3) for key in allowances}
    for seed in range(simulations):
        drawn, mean = POPULATIONS[name](generator, rows, n)
        null = drawn - mean[:, np.newaxis]
        gain = null + EFFECT
        ends = [bounds(each, seed) for each in (drawn, null, gain)]
        for key, more in allowances.items():
            (low, high), (low0, high0), (low1, _) = (
                allowed(each, *found, more) for each, found in zip((drawn, null, gain), ends, strict=True)
            )
            held = ((low <= mean + 1e-9) & (mean - 1e-9 <= high)).all()
            counts[key] += held, ((low0 > 0) | (high0 < 0)).any(), (low1 > 0).mean()
    cells = (" / ".join(f"{value:.3f}" for value in each / simulations) for each in counts.values())
    return f"| {name} | {rows} | {n} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--population", action="append", choices=list(POPULATIONS))
    parser.add_argument("--rows", action="append", type=int)
    parser.add_argument("--n", action="append", type=int)
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    cases = list(product(options.population or POPULATIONS, options.rows or ROWS, options.n or SIZES))
    print("| differences | rows | queries | 0: coverage / error / power | 1 | 2 | 3 | chosen |")
    print("|---" * 8 + "|")
    with ProcessPoolExecutor(options.processes) as pool:
        for row in pool.map(row_of, *zip(*cases, strict=True), [options.simulations] * len(cases)):
            print(row, flush=True)


if __name__ == "__main__":
    main()
