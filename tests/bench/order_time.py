"""What the order of `recommended` costs a query: milliseconds with and without it, in one process.

    python tests/bench/order_time.py
    python tests/bench/order_time.py --rounds 9 data=vault data.corpus=notes data.queries=queries.csv

Both pipelines answer every query in turn, in a new order each time, without caches and with nothing kept of earlier
queries. The cost is of the medians by query, its interval is a bootstrap of queries.
"""

from __future__ import annotations

import argparse
import random

import numpy as np

from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.config.arm_builder import ArmBuilder
from ragbench.config.benchmark import load
from ragbench.evaluation.latency import time_new, without_caches

ORDERS = ("questions", "off")


def times(words: list[str], most: int, rounds: int) -> tuple[Benchmark, np.ndarray]:
    """Milliseconds of shape (2, queries): the median of all rounds, with the order and without it."""
    settings = [composition.compose(["exp=recommended", f"ranker={order}", *words]) for order in ORDERS]
    benchmark = load(settings[0].config)
    arms = ArmBuilder.of(settings[0], benchmark).arms(settings)
    queries = [topic.query() for topic in benchmark.select(settings[0].split)[:most]]
    timed = without_caches(arms, queries[:5], 1)
    drawn, found = random.Random(13), np.zeros((len(timed), len(queries), rounds))
    for turn in range(rounds):
        for place, query in enumerate(queries):
            for number in drawn.sample(range(len(timed)), len(timed)):
                found[number, place, turn] = time_new(timed[number], query)[-1]
    return benchmark, np.median(found, axis=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options, words = parser.parse_known_args()
    benchmark, (with_order, without) = times(words, options.queries, options.rounds)
    drawn = np.random.default_rng(13).integers(len(without), size=(2_000, len(without)))
    cost = with_order - without
    low, high = np.quantile(np.median(cost[drawn], axis=1), [0.025, 0.975])
    print(f"{benchmark.name}: {len(benchmark.documents)} documents, {len(cost)} queries")
    print(f"p50 {np.median(without):.2f} ms without the order, {np.median(with_order):.2f} ms with it")
    p50, p95 = np.median(cost), np.quantile(cost, 0.95)
    print(f"cost of a query: p50 {p50:+.2f} ms [{low:+.2f}, {high:+.2f}], p95 {p95:+.2f} ms")


if __name__ == "__main__":
    main()
