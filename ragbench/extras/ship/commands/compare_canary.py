"""`ragbench compare canary`."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from ragbench.base import console
from ragbench.base.formatting import with_interval

DESCRIPTION = """Print which of two bundles users prefer, from the log of `ragbench serve --canary`.

In a share of the searches, the results of both bundles are interleaved in one list. The bundle with more opened
documents wins the search. The command prints the difference in wins with a 95% CI over sessions."""
EXAMPLES = """examples:
  ragbench serve bundle --canary bundle2 --share 5% --log searches.jsonl
  ragbench compare canary searches.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The log and output options."""
    parser.add_argument("log", type=Path, help="the file of serve --log")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read, count, print."""
    from ragbench.base.errors import BenchmarkError
    from ragbench.benchmark.search_log import read
    from ragbench.extras.ship.interleaved import preference

    found = preference(read(arguments.log.expanduser()).searches)
    if not found.searches:
        raise BenchmarkError(f"{arguments.log} has no search of two bundles: write one with ragbench serve --canary")
    if arguments.json:
        interval = found.difference._asdict()
        console.print_json({**dataclasses.asdict(found), "difference": interval, "verdict": found.verdict})
        return 0
    if found.others:
        console.say(f"{found.others} searches of other versions of the two are not counted")
    opened = found.first + found.canary + found.ties
    print(f"{found.searches} searches of both, something was opened in {opened} of {found.difference.n} sessions")
    print(f"won by the canary {found.canary}, by the first bundle {found.first}, by neither {found.ties}")
    value, low, high, _ = found.difference
    print(f"difference {with_interval(value, low, high)}: {found.verdict}")
    return 0
