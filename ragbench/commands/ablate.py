"""`ragbench ablate` (Measure and compare): measure the effect of each option with an ablation design."""

from __future__ import annotations

import argparse

from ragbench.base import console

DESCRIPTION = """Run an ablation design and report the effect, CI, latency and verdict of each option.

By default it uses the training queries, or all queries if there are fewer than 100. split=test selects the
test queries, split=all both."""
EXAMPLES = """examples:
  ragbench ablate exp=all                                     omit each proposal in turn
  ragbench ablate exp=baseline design=add_one                 add each proposal to the baseline
  ragbench ablate --arm deep="rerank=on rerank.depth=50" --arm brief="index.chunking.max_chars=1500"    add each arm
  ragbench ablate exp=all design=shapley factors=[p1,p2,p6]   attribute the gain to the options
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Overrides and output options."""
    console.add_experiment(parser)


def main(arguments: argparse.Namespace) -> int:
    """Plan, run, judge, write, log, print."""
    from ragbench.commands.run import carry_out
    from ragbench.config.overrides import named_arms
    from ragbench.workbench import Experiment

    experiment = Experiment.ablate(*arguments.overrides, candidates=named_arms(arguments.arm))
    return carry_out(arguments, experiment, experiment.measure, dashboard=True)
