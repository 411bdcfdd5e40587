"""`ragbench fit weights`."""

from __future__ import annotations

import argparse

from ragbench.base import console
from ragbench.base.errors import ConfigError
from ragbench.base.formatting import interval

DESCRIPTION = """Train fusion weights on the training queries, and report the gain on held-out queries.

Maximises nDCG@10 of the fused ranking, before any later stage."""
EXAMPLES = """examples:
  ragbench fit weights
  ragbench fit weights p7=on graph=on --draws 300
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many mixtures, overrides and output options."""
    parser.add_argument(
        "--draws", type=int, default=100, metavar="N", help="number of random weight vectors to try (default 100)"
    )
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Run the sources once over the train split, try mixtures, print the best."""
    from ragbench.config import composition
    from ragbench.config.benchmark import load
    from ragbench.evidence.statistics import compare
    from ragbench.extras.fit import fusions, training
    from ragbench.search.stages.fuse import Fuse

    if arguments.draws < 1:
        raise ConfigError(f"--draws must be at least 1, got {arguments.draws}")
    settings = composition.compose(arguments.overrides)
    stages = settings.pipeline.stages
    position, fuse = next(((n, stage) for n, (_, stage) in enumerate(stages) if isinstance(stage, Fuse)), (0, None))
    if fuse is None:
        raise ConfigError("this pipeline does not fuse by weighted ranks, so it has no such weights to learn")
    benchmark = load(settings.config)
    topics = benchmark.with_answer(training.fitted_on(benchmark))
    with console.progress(arguments.quiet or arguments.json):
        arm = training.cut(settings, benchmark, stages[: position + 1])
        states = training.answers(arm, topics)
        gain = fusions.document_gain(states, arm.index.chunks, benchmark)
        groups = [topic.cluster for topic in topics]
        seed = int(settings.config["seed"])
        learned = fusions.learn_weights(states, groups, fuse, arm.index, gain, draws=arguments.draws, seed=seed)
    held_out = compare(learned.held_out, learned.before, seed=seed)
    overrides = " ".join(f"fuse.weights.{source}={weight:g}" for source, weight in learned.weights.items())
    if arguments.json:
        console.print_json(
            {
                "weights": learned.weights,
                "overrides": overrides,
                "queries": len(states),
                "before": float(learned.before.mean()),
                "after": float(learned.after.mean()),
                "held_out": held_out,
            }
        )
        return 0
    print(f"nDCG@10 on {len(states)} training queries: {learned.before.mean():.4f} with the configured weights,")
    best = f"{learned.after.mean():.4f} with the best of {arguments.draws} weights"
    print(f"{best} (optimistic, because chosen on these queries);")
    print(
        f"on held-out queries the gain is {held_out.difference:+.4f} "
        f"(95% CI {interval(held_out.ci_low, held_out.ci_high, 4)})."
    )
    print(f"use them with: {overrides}")
    return 0
