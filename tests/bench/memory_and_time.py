"""Whether variants of queries take as long as the queries themselves, where nothing remembers either.

    python tests/bench/memory_and_time.py
    python tests/bench/memory_and_time.py exp=recommended --queries 40

Every sampled test query of the built-in benchmark and a variant of it that nobody asked before, in turns, with the
query memory cleared before each. The arms of the package remember nothing else, so both should take equally long.
"""

from __future__ import annotations

import argparse
import random

import numpy as np

from ragbench.config import composition
from ragbench.config.arm_builder import ArmBuilder
from ragbench.config.benchmark import load
from ragbench.evaluation.latency import QueryMutator, time_new, without_caches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", default=["exp=baseline"])
    parser.add_argument("--queries", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    settings = composition.compose(options.words)
    benchmark = load(settings.config)
    arms = ArmBuilder.of(settings, benchmark).arms([settings])
    chance = random.Random(13)
    queries = chance.sample([topic.query() for topic in benchmark.select("test")], options.queries)
    (arm,) = without_caches(arms, queries[:10], settings.latency.threads)
    unasked, own, variants = QueryMutator(queries), [], []
    for _ in range(options.rounds):
        for query in queries:
            both = [(own, query), (variants, unasked.of(query))]
            for times, asked in chance.sample(both, 2):
                times.append(time_new(arm, asked)[-1])
    print("| | p50 | p95 |", "|---|---|---|", sep="\n")
    for name, times in (("queries", own), ("variants", variants)):
        print(f"| {name} | {np.percentile(times, 50):.2f} ms | {np.percentile(times, 95):.2f} ms |")
    print(f"median of variant / query: {np.median(np.array(variants) / np.array(own)):.3f}")


if __name__ == "__main__":
    main()
