"""`ragbench advise` (Understand a search): suggest the next changes for a finished run, with their commands."""

from __future__ import annotations

import argparse

from ragbench.base import console

DESCRIPTION = "Read a finished run and print the next changes to try, with their commands."
EXAMPLES = """examples:
  ragbench advise                            the newest run, its best arm
  ragbench advise @2 --arm baseline          an arm of the previous run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run and arm."""
    parser.add_argument("--arm", metavar="ARM", help="arm to improve (default: the best arm)")
    console.add_runs(parser, "?")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the run and print the advice."""
    from ragbench.config import composition
    from ragbench.extras.atlas import advice
    from ragbench.report import screen
    from ragbench.results import measurements
    from ragbench.workbench.runs import named_runs

    (folder,), _ = named_runs(arguments.words, limit=1)
    loaded = measurements.load(folder)
    arm = arguments.arm or advice.best_arm(loaded)
    levers = advice.advice(loaded, arm, composition.project_overrides())
    if arguments.json:
        predictions = measurements.predictions_of_run(loaded)
        console.print_json({"run": folder, "arm": arm, "levers": levers, "expected": predictions})
    else:
        print("\n".join([*advice.lines(levers, loaded, arm), *screen.expected_lines(loaded)]))
    return 0
