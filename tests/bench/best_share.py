"""How often the arm with the largest share of bootstrap samples is the best one, next to that share.

    .venv/bin/python tests/bench/best_share.py --simulations 2000

Five arms whose true effects have a standard deviation of .03, with differences by query of .2.
"""

from __future__ import annotations

import argparse

import numpy as np

ARMS, EFFECT, QUERY, DRAWS = 5, 0.03, 0.2, 400


def main() -> None:
    """Print a row for every number of queries: the mean share of the likeliest arm, and how often it is the best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000)
    simulations = parser.parse_args().simulations
    print("| queries | mean share | best | mean share, if .85 or more | best |\n| ---: | ---: | ---: | ---: | ---: |")
    for n in (8, 30, 100, 250):
        chance = np.random.default_rng([13, n])
        shares, right = np.empty(simulations), np.empty(simulations, dtype=bool)
        for number in range(simulations):
            true = chance.normal(0, EFFECT, ARMS)
            values = true[:, np.newaxis] + chance.normal(0, QUERY, (ARMS, n))
            drawn = chance.multinomial(n, np.full(n, 1 / n), size=DRAWS)
            won = np.bincount((values @ drawn.T).argmax(axis=0), minlength=ARMS) / DRAWS
            shares[number], right[number] = won.max(), won.argmax() == true.argmax()
        sure = shares >= 0.85
        figures = (shares.mean(), right.mean(), shares[sure].mean(), right[sure].mean())
        print(f"| {n} | " + " | ".join(f"{each:.2f}" for each in figures) + " |")


if __name__ == "__main__":
    main()
