"""What is adopted, and what passes the gate, where passages truly lose: by simulation.

    python -m research.bench.adoption
    python -m research.bench.adoption --arms 5 --simulations 200

An arm with these true effects on documents and passages is judged among others without effects, against one base.
`veto`: adopted where a level is surely better and the other not surely worse, as before, with the family's critical
value for both. `ruled out`: where the other level's loss of `smallest_effect` (.02) is ruled out by its own one-sided
bound. Differences are as runs have them: 40% ties, standard deviation .2; documents and passages correlate by .7, two
arms by .5.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from unittest.mock import patch

import numpy as np
from scipy.stats import norm

from ragbench.evidence import statistics
from ragbench.evidence.statistics import Comparison, compare_all
from ragbench.evidence.verdict import LevelComparison, _combine
from ragbench.extras.export.gate import check_level

EFFECT, TIES, SD, DRAWS = 0.02, 0.4, 0.2, 999
EFFECTS = ((0.06, -0.03), (0.06, -0.02), (0.06, 0.0), (0.06, 0.03), (0.06, 0.06), (0.03, 0.0), (0.03, 0.03))


def differences(generator: np.random.Generator, arms: int, n: int, documents: float, passages: float) -> np.ndarray:
    """(2 arms, n), documents and passages in turn; the first arm has the effects, the others none."""
    base, arm = generator.standard_normal((1, 1, n)), generator.standard_normal((arms, 1, n))
    own = generator.standard_normal((arms, 2, n))
    u = norm.cdf(np.sqrt(0.5) * base + np.sqrt(0.2) * arm + np.sqrt(0.3) * own).reshape(-1, n)
    tail = np.clip((np.abs(u - 0.5) - TIES / 2) / (0.5 - TIES / 2), 0.0, 1 - 1e-12)
    values = -np.sign(u - 0.5) * np.log1p(-tail) * SD / np.sqrt(2 * (1 - TIES))  # Laplace, and ties
    shift = np.zeros((2 * arms, 1))
    shift[:2, 0] = documents, passages
    return values + (values != 0) * shift / (1 - TIES)


def judged(values: np.ndarray, seed: int) -> list[Comparison]:
    """The family; what is detectable takes most of the time and decides nothing."""
    unknown = lambda rows, *_, **__: np.full(len(rows), np.nan)  # noqa: E731
    with patch.object(statistics, "detectable_effects", unknown):
        return compare_all(values, np.zeros_like(values), seed=seed, draws=DRAWS)


def adopted_by_veto(levels: Sequence[LevelComparison]) -> bool:
    found = [level.quality(EFFECT) for level in levels]
    return "better" in found and "worse" not in found and not any(level.worse for level in levels)


def row_of(arms: int, effects: tuple[float, float], n: int, simulations: int) -> str:
    """`arms` counts the base."""
    generator, veto, ruled_out = np.random.default_rng(arms), 0, 0
    for seed in range(simulations):
        found = judged(differences(generator, arms - 1, n, *effects), seed)[:2]
        levels = tuple(
            LevelComparison(name, "nDCG@10", each) for name, each in zip(("document", "passage"), found, strict=True)
        )
        veto += adopted_by_veto(levels)
        ruled_out += _combine(levels, EFFECT) == "better"
    documents, passages = effects
    shares = f"{veto / simulations:.3f} | {ruled_out / simulations:.3f}"
    return f"| {documents:+.2f} | {passages:+.2f} | {arms} | {n} | {shares} |"


def gate_row(true: float, margin: float, n: int, simulations: int) -> str:
    """How often a pair with this effect on documents passes, fails or is not checked; and the sure losses that pass."""
    generator, outcomes, sure, passed = np.random.default_rng(n), [], 0, 0
    for seed in range(simulations):
        level = LevelComparison("document", "nDCG@10", judged(differences(generator, 1, n, true, 0.0)[:1], seed)[0])
        outcome, _ = check_level(level, margin)
        outcomes.append(outcome)
        sure += level.worse
        passed += level.worse and outcome == "passes"
    shares = " | ".join(f"{outcomes.count(name) / simulations:.3f}" for name in ("passes", "fails", "not checked"))
    return f"| {true:+.3f} | {margin:g} | {n} | {shares} | {passed} of {sure} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", action="append", type=int)
    parser.add_argument("--n", type=int, default=257)
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.processes) as pool:
        rows = list(product(options.arms or (2, 5, 26), EFFECTS))
        print("| documents | passages | arms | topics | veto | ruled out |", "|---|---|---|---|---|---|", sep="\n")
        counts = ([options.n] * len(rows), [options.simulations] * len(rows))
        for row in pool.map(row_of, *zip(*rows, strict=True), *counts):
            print(row, flush=True)
        gates = [
            *((true, 0.0, n) for true, n in ((-0.05, 257), (-0.011, 3_000))),
            *((true, 0.01, n) for true, n in ((-0.01, 257), (-0.011, 3_000), (0.0, 257), (0.0, 1_000), (0.0, 3_000))),
        ]
        print("\n| effect | margin | topics | passes | fails | not checked | sure losses that pass |")
        print("|---|---|---|---|---|---|---|")
        for row in pool.map(gate_row, *zip(*gates, strict=True), [options.simulations] * len(gates)):
            print(row, flush=True)


if __name__ == "__main__":
    main()
