"""Which statistic gives the shortest intervals at few topics and still holds: coverage and half-widths, by simulation.

    python -m research.bench.few_topics                          synthetic populations
    python -m research.bench.few_topics --built-in               real differences: six presets on the built-in benchmark
    python -m research.bench.few_topics --runs results/runs/*    those of finished runs of the same arms, topics pooled
    python -m research.bench.few_topics --n 30 --simulations 200 --only before --only chosen

A family is six arms at two levels against one base (documents only where runs have no passages). Topics are drawn with
replacement, so the mean over all topics of a population is the truth. `family` is how often all intervals of a family
hold it, `median` and `p90` are of half-widths.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit
from scipy.stats import norm

from ragbench.evidence import max_t, t_statistic

Floats = np.ndarray
SIZES = (10, 15, 30, 60, 120)
DRAWS, LEVEL, ROWS, POPULATION = 1_999, 0.05, 12, 20_000
WIDER = 1.02
PRESETS = "lexical_only,dense_only,plain_hybrid,phase1,phase3,recommended"


# Statistics: bounds of every row of differences, (k, n) -> low and high.


def chosen(differences: Floats, seed: int) -> tuple[Floats, Floats]:
    """What `ragbench.evidence` does: the plain t, sign flips and bootstrap, a floor under the variance."""
    n, by_chance = _by_chance(differences, seed)
    return t_statistic.bounds(differences, n, *max_t.critical(by_chance, LEVEL, differences.shape[1], len(n)))


def wider(differences: Floats, seed: int) -> tuple[Floats, Floats]:
    """The chosen one with critical values that are 2% larger."""
    (low, high), mean = chosen(differences, seed), differences.mean(axis=1)
    return mean - WIDER * (mean - low), mean + WIDER * (high - mean)


def flips_only(differences: Floats, seed: int) -> tuple[Floats, Floats]:
    """The plain t with sign flips alone, which take differences for symmetric."""
    n, by_chance = _by_chance(differences, seed)
    critical = _critical([by_chance.sign_flip], *differences.shape)
    return t_statistic.bounds(differences, n, critical, critical)


def _by_chance(differences: Floats, seed: int) -> tuple[Floats, max_t.Chance]:
    n = np.full(len(differences), differences.shape[1])
    return n, max_t.simulate(differences, np.ones(differences.shape, dtype=bool), seed, DRAWS)


def _critical(references: Sequence[Floats], rows: int, n: int) -> float:
    """The largest of the values that 5% of the draws exceed; Student's t where there are too few draws."""
    student = -stdtrit(n - 1, LEVEL / (2 * rows))
    allowed = [int(np.floor(LEVEL * (len(draws) + 1))) - 1 for draws in references]
    return max(np.sort(draws)[-1 - a] if a >= 0 else student for draws, a in zip(references, allowed, strict=True))


@dataclass(frozen=True)
class Hall:
    """Hall's transformation, its skewness times n / (n + `shrink`); a floor of `typical` changes; as it was before.

    Where all sign patterns were used, no bootstrap samples were.
    """

    shrink: float = 0.0
    typical: float = 8.0

    def __call__(self, differences: Floats, seed: int) -> tuple[Floats, Floats]:
        k, n = differences.shape
        floor = self.typical * (differences**2).sum() / max(1, np.count_nonzero(differences)) / n + 1e-30
        moved = differences[:, (differences != 0).any(axis=0)]
        found = [
            np.abs(self._z(n, moved @ signs, (moved**2).sum(axis=1, keepdims=True), moved**3 @ signs, floor)).max(
                axis=0
            )
            for signs in max_t._sign_patterns(moved.shape[1], k, DRAWS, seed)
        ]
        references = [np.concatenate([np.empty(0), *found])]
        if len(references[0]) >= DRAWS:
            centred = differences - differences.mean(axis=1, keepdims=True)
            (counts,) = max_t.resamples(n, k, DRAWS, seed)
            first, second, third = (centred**power @ counts for power in (1, 2, 3))
            references.append(np.abs(self._z(n, first, second, third, floor)).max(axis=0))
        reach = _critical(references, k, n) / np.sqrt(n - 1.0)
        first, second, third = (np.sum(differences**power, axis=1) for power in (1, 2, 3))
        mean, root, g = self._moments(n, first, second, third, floor)
        return mean - root * self._solved(reach, g, n), mean - root * self._solved(-reach, g, n)

    def _moments(self, n: int, first: Floats, second: Floats, third: Floats, floor: float) -> tuple[Floats, ...]:
        mean = first / n
        variance = np.maximum(second / n - mean**2, floor)
        cubed = third / n - 3 * mean * second / n + 2 * mean**3
        unbiased = n**2 / ((n - 1.0) * (n - 2.0)) * n / (n + self.shrink)
        return mean, np.sqrt(variance), unbiased * cubed / variance**1.5

    def _z(self, n: int, first: Floats, second: Floats, third: Floats, floor: float) -> Floats:
        mean, root, g = self._moments(n, first, second, third, floor)
        w = mean / root
        return np.sqrt(n - 1.0) * (w + g * w**2 / 3 + g**2 * w**3 / 27 + g / (6 * n))

    def _solved(self, reached: float, g: Floats, n: int) -> Floats:
        y, flat = reached - g / (6 * n), np.abs(g) < 1e-6
        steep = np.where(flat, 1.0, g)
        return np.where(flat, y, 3 * (np.cbrt(1 + steep * y) - 1) / steep)


def bca(differences: Floats, seed: int) -> tuple[Floats, Floats]:
    """Bias-corrected and accelerated bootstrap of each row (Efron, JASA 82, 1987), Bonferroni over the rows."""
    k, n = differences.shape
    (counts,) = max_t.resamples(n, k, DRAWS, seed)
    means, mean = differences @ counts / n, differences.mean(axis=1, keepdims=True)
    bias = ndtri(np.clip(((means < mean).mean(axis=1) + (means <= mean).mean(axis=1)) / 2, 1 / DRAWS, 1 - 1 / DRAWS))
    off = mean - differences
    faster = (off**3).sum(axis=1) / (6 * np.maximum((off**2).sum(axis=1), 1e-30) ** 1.5)
    ends = []
    for tail in (LEVEL / (2 * k), 1 - LEVEL / (2 * k)):
        z = bias + ndtri(tail)
        share = ndtr(bias + z / (1 - faster * z))
        ends.append(np.array([np.quantile(row, place) for row, place in zip(means, share, strict=True)]))
    return ends[0], ends[1]


STATISTICS: dict[str, Callable[[Floats, int], tuple[Floats, Floats]]] = {
    "before": Hall(),
    "skewness shrunk": Hall(60.0),
    "max-t, flips only": flips_only,
    "BCa": bca,
    "chosen": chosen,
    "2% wider": wider,
}


# Populations: families of differences, drawn by topic.


@dataclass(frozen=True)
class Population:
    """Rows of differences: `columns` are drawn whole, or rows from their own values with correlated ranks."""

    rows: Floats
    columns: bool

    def draw(self, generator: np.random.Generator, n: int) -> Floats:
        if self.columns:
            return self.rows[:, generator.integers(self.rows.shape[1], size=n)]
        base, arm = generator.standard_normal((1, 1, n)), generator.standard_normal((len(self.rows) // 2, 1, n))
        own = generator.standard_normal((len(self.rows) // 2, 2, n))
        normal = (np.sqrt(0.5) * base + np.sqrt(0.2) * arm + np.sqrt(0.3) * own).reshape(-1, n)
        places = np.minimum((norm.cdf(normal) * self.rows.shape[1]).astype(int), self.rows.shape[1] - 1)
        return np.take_along_axis(self.rows, places, axis=1)


def _sorted(rows: Sequence[Floats]) -> Population:
    return Population(np.sort(np.stack(rows), axis=1), columns=False)


def like_runs() -> Population:
    """20 to 90% ties, every second row skewed, mean 0 (as in `promises.py`)."""
    generator, rows = np.random.default_rng(5), []
    for row, ties in enumerate(np.linspace(0.2, 0.9, ROWS)):
        changed = generator.random(POPULATION) >= ties
        small, size = generator.random(POPULATION) < 2 / 3, generator.beta(0.9, 4.0, POPULATION)
        skewed = np.where(small, size, -np.minimum(2 * size, 1.0))
        values = (skewed if row % 2 else size * generator.choice([-1.0, 1.0], POPULATION)) * changed
        values[changed] -= values[changed].mean()
        rows.append(-values if row % 4 == 3 else values)
    return _sorted(rows)


def zero_inflated() -> Population:
    """85% ties; of the others a mean of -.05, 0 or +.05."""
    generator = np.random.default_rng(7)
    size = [np.clip(generator.laplace(0.05 * (row % 3 - 1), 0.2, POPULATION), -1, 1) for row in range(ROWS)]
    return _sorted([values * (generator.random(POPULATION) >= 0.85) for values in size])


def rare_losses() -> Population:
    """4, 6, 8 or 10% of topics lose .3 to 1, half of the others gain a little."""
    generator, rows = np.random.default_rng(8), []
    for row in range(ROWS):
        lost, gains = (
            generator.random(POPULATION) < 0.04 + 0.02 * (row % 4),
            np.abs(generator.normal(0, 0.06, POPULATION)),
        )
        gains *= generator.random(POPULATION) < 0.5
        rows.append(np.where(lost, -generator.uniform(0.3, 1, POPULATION), gains))
    return _sorted(rows)


def exponential() -> Population:
    """Skewness 2, no ties; mirrored for every second arm."""
    generator = np.random.default_rng(9)
    values = [0.15 * (generator.exponential(1, POPULATION) - 1) for _ in range(ROWS)]
    return _sorted([np.clip(each if row % 4 < 2 else -each, -1, 1) for row, each in enumerate(values)])


def normal() -> Population:
    generator = np.random.default_rng(10)
    return _sorted([generator.normal(0.02 * (row % 3 - 1), 0.15, POPULATION) for row in range(ROWS)])


SYNTHETIC = {
    "like runs": like_runs,
    "zero-inflated": zero_inflated,
    "rare losses": rare_losses,
    "exponential": exponential,
    "normal": normal,
}


def of_runs(folders: Sequence[Path]) -> Population:
    """The differences of all arms to the first, at the levels that all runs have, topics of all runs pooled."""
    import pandas as pd

    from ragbench.evidence.arms import Arms
    from ragbench.results import measurements

    read = [Arms.of(measurements.load(folder)) for folder in folders]
    shared = [arm for arm in read[0].arms if all(arm in each.arms for each in read)]
    levels = [level for level in read[0].levels if all(level in each.levels for each in read)]
    tables = []
    for arms in read:
        values = {
            (arm, level): pd.Series(arms.arms[arm].levels[level]) - pd.Series(arms.arms[shared[0]].levels[level])
            for arm in shared[1:]
            for level in levels
        }
        tables.append(pd.DataFrame(values).dropna())
    rows = pd.concat(tables).to_numpy(copy=True).T
    rows[np.abs(rows) < 1e-9] = 0.0
    return Population(rows, columns=True)


def built_in() -> Population:
    """Six presets against `baseline` on all topics of the built-in benchmark."""
    from ragbench.commands import cli

    folder = Path(tempfile.mkdtemp())
    words = ["split=all", "latency.enabled=false", "tracking.enabled=false", f"paths.results={folder}"]
    if cli.main(["run", "-m", f"exp=baseline,{PRESETS}", *words, "--quiet"]) != 0:
        raise SystemExit("the run of the built-in benchmark failed")
    return of_runs(list((folder / "runs").iterdir()))


@cache
def population(name: str) -> Population:
    if name in SYNTHETIC:
        return SYNTHETIC[name]()
    with np.load(name.partition("=")[2]) as stored:
        return Population(stored["rows"], columns=True)


def row_of(name: str, n: int, statistics: Sequence[str], simulations: int) -> str:
    drawn, truth = population(name), population(name).rows.mean(axis=1)
    generator, lines = np.random.default_rng(n), []
    samples = [drawn.draw(generator, n) for _ in range(simulations)]
    for statistic in statistics:
        held, half = [], []
        for seed, differences in enumerate(samples):
            low, high = (np.clip(end, -1, 1) for end in STATISTICS[statistic](differences, seed))
            held.append(((low <= truth + 1e-9) & (truth - 1e-9 <= high)).all())
            half.append((high - low) / 2)
        median, long = np.quantile(half, [0.5, 0.9])
        label = name.partition("=")[0]
        lines.append(f"| {label} | {n} | {statistic} | {np.mean(held):.3f} | {median:.3f} | {long:.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built-in", action="store_true")
    parser.add_argument("--runs", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--n", action="append", type=int)
    parser.add_argument("--population", action="append", choices=list(SYNTHETIC))
    parser.add_argument("--only", action="append", choices=list(STATISTICS))
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    names = options.population or ([] if options.runs or options.built_in else list(SYNTHETIC))
    with tempfile.TemporaryDirectory() as folder:
        for label, make in (("built-in", built_in), ("runs", lambda: of_runs(options.runs))):
            if (label == "built-in" and options.built_in) or (label == "runs" and options.runs):
                np.savez(Path(folder) / f"{label}.npz", rows=make().rows)
                names.append(f"{label}={Path(folder) / label}.npz")
        rows = list(product(names, options.n or SIZES))
        print("| differences | topics | statistic | family | median | p90 |", "|---|---|---|---|---|---|", sep="\n")
        with ProcessPoolExecutor(options.processes) as pool:
            arguments = ([options.only or list(STATISTICS)] * len(rows), [options.simulations] * len(rows))
            for row in pool.map(row_of, *zip(*rows, strict=True), *arguments):
                print(row, flush=True)


if __name__ == "__main__":
    main()
