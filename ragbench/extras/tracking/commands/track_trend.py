"""`ragbench track trend`: the tracked runs of a configuration over time, and whether it got worse."""

from __future__ import annotations

import argparse

from ragbench.base import console
from ragbench.base.types import FAILED

DESCRIPTION = """The tracked runs of a configuration over time, in lines that can be compared: exit code 1 in an alarm.

A line ends where documents, queries, judgments, measure, models or the CPU change. Within a line, runs are compared
with the mean of its first seven, query by query. An alarm begins when three runs in a row are lower."""
EXAMPLES = """examples:
  ragbench track trend
  ragbench track trend --arm recommended
  ragbench track trend tracking.uri=http://mlflow.example:5000
"""
_SHOWN = 30  # runs on the screen; --json has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arm, and overrides that say where the store is."""
    parser.add_argument("--arm", metavar="NAME", help="arm (default: the only one in the store)")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the runs, judge them, print the newest."""
    from ragbench.config import composition
    from ragbench.extras.tracking import nights, store, trend, trend_table

    settings = composition.compose(arguments.overrides)
    target = store.target_of(settings)
    store.check(target)
    with console.progress(arguments.quiet):
        arm, runs = nights.read(target, arguments.arm)
        found = trend.points(runs)
    title = f"{found[-1].night.facts['measure'] or 'nDCG@10'} of {arm} over time"
    frame = trend_table.frame(found)
    if arguments.json:
        console.print_json({"arm": arm, "alarm": bool(found[-1].alarm), "runs": frame})
    else:
        console.print_table(trend_table.compact(found[-_SHOWN:]), title)
        console.print_text(trend_table.sentence(found))
    return FAILED if found[-1].alarm else 0
