"""The price of looks at test topics: ideas tried one after another, by simulation.

    python tests/bench/looks.py
    python tests/bench/looks.py --looks 12 --n 100 --simulations 200

`some adopted` is how often at least one of `looks` ideas without effect is adopted; `power` how often an idea with
a true +.08 (documents) and +.04 (passages) is, at the look of that number. Rules give every look its share of .05:

- `none`: all of it, every time, as before (looks were counted and not priced)
- `one family`: all ideas at the end, together; this is possible only when all are known
- `in turn`: 1 / (k (k + 1)) of it at look k (Foster and Stine 2008 call such a sequence spending); after k looks
  1 / (k + 1) of it is left
- `squares`: 6 / (pi k)^2 of it
- `twenty`: a twentieth, and after twenty looks nothing
- `half on train`: all of it, for ideas that are adopted on as many train topics first (explore, then confirm)
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from unittest.mock import patch

import numpy as np
from adoption import DRAWS, EFFECT, differences

from ragbench.evidence import statistics
from ragbench.evidence.statistics import compare_all
from ragbench.evidence.verdict import Level, combine

RULES: dict[str, Callable[[int], float]] = {
    "none": lambda k: 1.0,
    "in turn": lambda k: 1 / (k * (k + 1)),
    "squares": lambda k: 6 / (np.pi * k) ** 2,
    "twenty": lambda k: 0.05 if k <= 20 else 0.0,
}
POWER_AT = (1, 2, 4, 8, 12)


def adopted(values: np.ndarray, seed: int, share: float) -> list[bool]:
    """Whether each arm of a family is adopted where the family may err in `share` of .05."""
    unknown = lambda rows, *_, **__: np.full(len(rows), np.nan)  # noqa: E731
    with patch.object(statistics, "detectable_effects", unknown):
        found = compare_all(
            values, np.zeros_like(values), seed=seed, draws=10 * DRAWS, confidence=1 - 0.05 * share, alone=0.95
        )
    levels = [Level("document" if row % 2 == 0 else "passage", "nDCG@10", each) for row, each in enumerate(found)]
    pairs = zip(levels[::2], levels[1::2], strict=True)
    return [combine(pair, EFFECT) == "better" for pair in pairs]


def trial(seed: int, looks: int, n: int) -> tuple[dict[str, bool], dict[tuple[str, int], bool]]:
    """One user with `looks` ideas on the same topics: what each rule adopts."""
    generator = np.random.default_rng([seed, looks])
    test, train = (differences(generator, looks, n, 0.0, 0.0) for _ in range(2))
    true = differences(generator, 1, n, 0.08, 0.04)
    first = [adopted(train[2 * k : 2 * k + 2], seed, 1.0)[0] for k in range(looks)]
    some = {"one family": any(adopted(test, seed, 1.0)), "half on train": False}
    for name, share in RULES.items():
        wins = [adopted(test[2 * k : 2 * k + 2], seed, share(k + 1))[0] for k in range(looks)]
        some[name] = any(wins)
        if name == "none":
            some["half on train"] = any(a and b for a, b in zip(wins, first, strict=True))
    power = {(name, k): adopted(true, seed, share(k))[0] for name, share in RULES.items() for k in POWER_AT}
    again = adopted(differences(generator, 1, n, 0.08, 0.04), seed, 1.0)[0]
    power |= {("half on train", k): power["none", k] and again for k in POWER_AT}
    return some, power


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--looks", type=int, default=12)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.processes) as pool:
        many = options.simulations
        found = list(pool.map(trial, range(many), [options.looks] * many, [options.n] * many))
    heads = " | ".join(f"power at look {k}" for k in POWER_AT)
    print(f"| rule | some of {options.looks} adopted | {heads} |", "|---|---|" + "---|" * len(POWER_AT), sep="\n")
    for name in ("none", "one family", *list(RULES)[1:], "half on train"):
        error = np.mean([some[name] for some, _ in found])
        powers = [np.mean([power[name, k] for _, power in found]) if name != "one family" else np.nan for k in POWER_AT]
        shown = " | ".join("" if np.isnan(value) else f"{value:.2f}" for value in powers)
        print(f"| {name} | {error:.3f} | {shown} |")


if __name__ == "__main__":
    main()
