"""`ragbench verify` (Ship it): check that a bundle returns the measured results on this machine."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ragbench.base import console
from ragbench.base.types import short_path
from ragbench.extras.export.gate import show
from ragbench.extras.ship.address import parse_location

DESCRIPTION = """Check that a bundle returns the measured results on this machine; exit code 1 if it does not.

It replays the golden queries and compares ids and scores, checks models, documents and index, and measures latency."""
EXAMPLES = """examples:
  ragbench verify bundle
  ragbench verify bundle --corpus ~/notes --latency-tolerance 1.0     p95 may be twice as high here
  ragbench verify bundle --no-latency --json                          in CI on machines of varying speed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle, what to compare with, output options."""
    parser.add_argument("bundle", type=parse_location, help="bundle folder written by ragbench export")
    parser.add_argument("--corpus", type=Path, metavar="PATH", help="folder of the documents on this machine")
    parser.add_argument(
        "--latency-tolerance",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="how much higher p95 may be (default 0.5: half)",
    )
    parser.add_argument("--no-latency", action="store_true", help="do not measure latency")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Check and print; 1 when a check fails."""
    from ragbench.extras.ship.deployment import verify

    with console.progress(arguments.quiet or arguments.json):
        checks = verify(
            arguments.bundle,
            corpus=arguments.corpus,
            latency_tolerance=arguments.latency_tolerance,
            latency=not arguments.no_latency,
        )
        code = show(checks, arguments.json)
    if code == 0 and not arguments.json:
        console.next_command(shlex.join(["serve", short_path(arguments.bundle)]))
    return code
