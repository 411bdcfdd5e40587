"""`ragbench tune` (Improve it): tune hyperparameters on the training queries, confirm them once on the test queries."""

from __future__ import annotations

import argparse
import logging
import shlex

from ragbench.base import console

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Tune hyperparameters on the training queries; confirm the best configuration once on the test queries.

Nested cross-validation estimates how much of the gain is due to chance. Run the same command again to resume a stopped
search, or with a larger tune.trials to extend a finished one. `ragbench list parameters tune` shows the ranges."""
EXAMPLES = """examples:
  ragbench tune exp=all                                                200 trials, and 200 in each of 5 folds
  ragbench tune exp=phase2 budget.p95_ms=20 tune.trials=500 tune.folds=0   the latency that the winner may add, no folds
  ragbench tune p6=on 'tune=[fuse,p6]'                                  only fusion and re-ranking parameters
  ragbench tune exp=phase1 --arm deep="rerank=on rerank.depth=50"      also start from this arm
  ragbench tune exp=all '+tune.space.dense.depth={low: 20, high: 200}' tune one more parameter
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Overrides and output options."""
    console.add_arms(parser)
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Search, confirm, write, log, print."""
    from ragbench.config.overrides import named_arms
    from ragbench.extras.fit.workbench import tune

    starts = [shlex.join(overrides) for overrides in named_arms(arguments.arm).values()]
    with console.progress(arguments.quiet or arguments.json):
        tuning = tune(*arguments.overrides, starts=starts)
    if arguments.json:
        console.print_json({**tuning.summary(), "mlflow_run": tuning.tracking_run})
        return 0
    for title, frame in tuning.tables.items():
        console.print_table(frame, title)
    for sentence in tuning.sentences:
        print(sentence)
    for sentence in tuning.warnings:
        _LOG.warning(sentence)
    if tuning.confirmation is not None:
        print(f"test results in {tuning.confirmation.results.folder}")
    print(f"search in {tuning.folder}" + (f", MLflow run {tuning.tracking_run}" if tuning.tracking_run else ""))
    return 0
