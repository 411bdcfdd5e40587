"""How often `ragbench track trend` finds a drop within three nights, and how often it gives a false alarm.

    python -m research.bench.trend --simulations 200

A query's best page is at rank 2^x, with x normal (mean 0.9, deviation 2), and its value is nDCG@10. Noise: every night
adds another normal shift to each x. Changes: from a night on, x is nearer or farther by a normal shift that stays, as
of a harmless change of the code, while the distribution of x stays the same. Drops stay, too: queries that are lost, or
ranks that grow by a factor, so that the mean over all queries is 0.05 lower. The queries are a sample, so that the drop
in a series is not exactly 0.05.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.optimize import brentq

from ragbench.extras.tracking.store import FACTS
from ragbench.extras.tracking.trend import Night, points

NIGHTS, BEFORE, WITHIN, DROP = 300, 10, 3, 0.05
SIZES = (50, 100, 200)
DRAWS = 500
Floats = np.ndarray


def ndcg(x: Floats) -> Floats:
    """The values of queries whose best page is at rank 2^x."""
    rank = np.maximum(1, np.floor(2**x))
    return np.where(rank <= 10, 1 / np.log2(1 + rank), 0.0)


def drops() -> dict[str, float]:
    """The share of lost queries, and the shift of x, that lower the mean by `DROP`."""
    x = np.random.default_rng(0).normal(0.9, 2.0, 400_000)
    mean = ndcg(x).mean()
    shift = brentq(lambda by: mean - ndcg(x + by).mean() - DROP, 0, 3, xtol=1e-4)
    return {"lost queries": DROP / mean, "larger ranks": shift}


def series(nights: list[Floats]) -> list[Night]:
    """Nights of one line with these values."""
    facts = dict.fromkeys(FACTS, "same")
    return [
        Night(float(at), str(at), {f"{q:04}": float(v) for q, v in enumerate(row)}, facts)
        for at, row in enumerate(nights)
    ]


def alarms(rng: np.random.Generator, n: int, noise: float, every: int, shift: float) -> int:
    """False alarms that begin in `NIGHTS` nights."""
    x, rows, kept = rng.normal(0.9, 2.0, n), [], np.sqrt(1 - (shift / 2) ** 2)
    for night in range(NIGHTS):
        if every and night and night % every == 0:
            x = 0.9 + kept * (x - 0.9) + rng.normal(0, shift, n)
        rows.append(ndcg(x + rng.normal(0, noise, n)))
    return sum(point.alarm == "begins" for point in points(series(rows), DRAWS))


def is_found(rng: np.random.Generator, n: int, noise: float, kind: str, size: float) -> bool:
    """Whether an alarm comes within `WITHIN` nights after a drop, and none before."""
    x = rng.normal(0.9, 2.0, n)
    lost = (rng.random(n) < size) if kind == "lost queries" else np.zeros(n, dtype=bool)
    lower = x + (size if kind == "larger ranks" else 0.0)
    rows = [ndcg(x + rng.normal(0, noise, n)) for _ in range(BEFORE)]
    rows += [np.where(lost, 0.0, ndcg(lower + rng.normal(0, noise, n))) for _ in range(WITHIN)]
    found = [bool(point.alarm) for point in points(series(rows), DRAWS)]
    return any(found[BEFORE:]) and not any(found[:BEFORE])


def main() -> None:
    """Print the table: the share of drops that are found, and the false alarms of ten months."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of queries")
    parser.add_argument("--series", type=int, default=40, help="simulated series of ten months")
    given = parser.parse_args()
    for noise in (0.0, 0.25, 0.5):
        for kind, size in drops().items():
            rates = []
            for n in given.sizes:
                rng = np.random.default_rng([n, int(100 * noise)])
                rates.append(np.mean([is_found(rng, n, noise, kind, size) for _ in range(given.simulations)]))
            print(f"found: {kind}, noise {noise:4}{''.join(f'{rate:8.2f}' for rate in rates)}", flush=True)
    for name, noise, every, shift in (
        ("noise 0.25", 0.25, 0, 0.0),
        ("noise 0.5", 0.5, 0, 0.0),
        ("and a change a month", 0.25, 30, 0.25),
        ("and a change a week", 0.25, 7, 0.25),
        ("and a change a night", 0.25, 1, 0.25),
    ):
        means = []
        for n in given.sizes:
            rng = np.random.default_rng([n, 7, every])
            means.append(np.mean([alarms(rng, n, noise, every, shift) for _ in range(given.series)]))
        print(f"false alarms: {name:22}{''.join(f'{mean:8.2f}' for mean in means)}", flush=True)


if __name__ == "__main__":
    main()
