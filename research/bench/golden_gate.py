"""How often `ragbench gate --golden` fails, by the number of queries and the change of the search, by simulation.

    python -m research.bench.golden_gate --simulations 300

A query's best page is at rank 2^x, with x normal (mean 0.9, deviation 2): half are first, nine of ten among the first
ten. A harmless change adds a normal shift with mean 0 to x, such as 0.5: a page at rank 8 then goes to a rank between 6
and 11 in two of three cases. A harmful one also loses a share of the queries, or doubles all ranks.
"""

from __future__ import annotations

import argparse

import numpy as np

from ragbench.extras.remote.golden_gate import MEASURES, judge

SIZES, DEPTH = (15, 25, 40, 60), 10
CHANGES = {
    "harmless, shift 0.25": (0.25, 0.0, 0.0),
    "harmless, shift 0.5": (0.5, 0.0, 0.0),
    "loses a tenth": (0.25, 0.1, 0.0),
    "loses a fifth": (0.25, 0.2, 0.0),
    "doubles all ranks": (0.25, 0.0, 1.0),
}
"""The deviation of the shift, the share of lost queries, the mean of the shift."""


def answers(x: np.ndarray, lost: np.ndarray) -> dict[str, dict[str, dict[str, int | None]]]:
    """The ranks of a surface."""
    ranks = np.maximum(1, np.floor(2**x)).astype(int)
    placed = [None if gone or rank > DEPTH else int(rank) for rank, gone in zip(ranks, lost, strict=True)]
    return {"search": {str(number): {"page": rank} for number, rank in enumerate(placed)}}


def main() -> None:
    """Print the share of gates that fail: by a lost query, by two or more, by a significant drop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=300)
    simulations = parser.parse_args().simulations
    for change, (deviation, share, mean) in CHANGES.items():
        for n in SIZES:
            rng = np.random.default_rng(n)
            fails = np.zeros(3)
            for _ in range(simulations):
                x = rng.normal(0.9, 2.0, n)
                before = answers(x, np.zeros(n, dtype=bool))
                now = answers(x + rng.normal(mean, deviation, n), rng.random(n) < share)
                (outcome,) = judge(before, now, MEASURES.split(","), depth=DEPTH).values()
                lost = sum(moved.counts for moved in outcome.lost)
                fails += (lost > 0, lost > 1, any("significantly" in failure for failure in outcome.failures))
            shown = "".join(f"{count / simulations:8.0%}" for count in fails)
            print(f"{change:24}{n:4}{shown}", flush=True)


if __name__ == "__main__":
    main()
