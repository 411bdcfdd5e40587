"""How often the intervals of p95 hold the true value when the machine is slow in episodes, today's and by blocks.

    python -m research.bench.slow_episodes --simulations 400

80 queries, two rounds; for 12% of the time everything takes three times as long, in episodes of about 16 queries.
Both arms answer side by side, so that an episode slows both. `blocks`: runs of consecutive queries are resampled.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from ragbench.evaluation.intervals import Samples, _p95_bounds, weighted_sum

Floats = NDArray[np.float64]
QUERIES, ROUNDS, SHARE, LENGTH, SLOWER = 80, 2, 0.12, 16, 3.0
BLOCKS = (8, 16)


def times(chance: np.random.Generator, arms: tuple[float, ...], n: int, rounds: int, episodes: bool) -> Floats:
    """Milliseconds of shape (arms, rounds, n), in the order in which they were taken."""
    own = np.exp(chance.normal(2.5, 0.4, (1, 1, n)))
    noise = np.exp(chance.normal(0, 0.05, (len(arms), rounds, n)))
    slow = np.zeros(rounds * n, dtype=bool)
    state = chance.random() < SHARE
    for place in range(len(slow) if episodes else 0):
        slow[place] = state
        leave = 1 / LENGTH if state else SHARE / (1 - SHARE) / LENGTH
        state = state ^ (chance.random() < leave)
    found = own * noise * np.where(slow, SLOWER, 1.0).reshape(1, rounds, n)
    return np.asarray(np.array(arms)[:, np.newaxis, np.newaxis] * found, dtype=np.float64)


def by_block(
    chance: np.random.Generator, taken: Floats, weights: tuple[float, ...], length: int
) -> tuple[float, float]:
    """The 95% interval of a weighted sum of p95, resampling blocks of `length` moments (circular)."""
    flat = taken.reshape(len(taken), -1)
    n = flat.shape[1]
    starts = chance.integers(0, n, (1000, -(-n // length)))
    places = ((starts[..., np.newaxis] + np.arange(length)) % n).reshape(1000, -1)[:, :n]
    drawn = np.percentile(flat[:, places], 95, axis=2, method="inverted_cdf")
    low, high = np.percentile(np.array(weights) @ drawn, [1, 99])
    return float(low), float(high)


def main() -> None:
    """Print the share of intervals that hold the truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=400)
    simulations = parser.parse_args().simulations
    print("| times | what | today | " + " | ".join(f"blocks of {length}" for length in BLOCKS) + " |")
    print("| --- | --- | ---: |" + " ---: |" * len(BLOCKS))
    for episodes in (False, True):
        for arms, weights in (((1.0,), (1.0,)), ((1.0, 1.0), (-1.0, 1.0)), ((1.0, 1.3), (-1.0, 1.0))):
            chance = np.random.default_rng(13)
            many = times(chance, arms, 500_000, 1, episodes)
            truth = float(np.array(weights) @ np.percentile(many, 95, axis=(1, 2)))
            held = np.zeros(1 + len(BLOCKS))
            for _ in range(simulations):
                taken = times(chance, arms, QUERIES, ROUNDS, episodes)
                if len(arms) == 1:
                    low, high = _p95_bounds(taken[0].T)
                else:
                    qids = [str(n) for n in range(QUERIES)] * ROUNDS
                    samples = [Samples(qids, each.ravel()) for each in taken]
                    added = weighted_sum(list(zip(samples, weights, strict=True)))
                    low, high = added["p95_low"], added["p95_high"]
                ends = [(low, high), *(by_block(chance, taken, weights, length) for length in BLOCKS)]
                held += [low <= truth <= high for low, high in ends]
            kind = "slow episodes" if episodes else "quiet"
            what = "p95" if len(arms) == 1 else f"difference, {arms[1] - 1:+.0%}"
            print(f"| {kind} | {what} | " + " | ".join(f"{each / simulations:.3f}" for each in held) + " |")


if __name__ == "__main__":
    main()
