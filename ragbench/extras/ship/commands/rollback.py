"""`ragbench rollback`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench.base import console

DESCRIPTION = """Restore the index that a bundle had before its latest refresh, without reading or indexing documents.

The restored index becomes a new generation with a higher number. A second rollback undoes the first one. `--to N` is
idempotent, so you can repeat it after an interruption. First stop any process that refreshes the bundle: it would index
the same documents again."""
EXAMPLES = """examples:
  ragbench rollback bundle
  ragbench rollback bundle --to 4
  ragbench rollback bundle --to 0               to the exported documents
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle and output options."""
    parser.add_argument("bundle", type=Path, help="the folder of a bundle that was refreshed")
    parser.add_argument("--to", type=int, metavar="N", help="generation to serve again (default: the one before)")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Go back, say what changed."""
    from ragbench.base.errors import BundleError
    from ragbench.extras.ship.address import engines
    from ragbench.extras.ship.commands.refresh import tell
    from ragbench.extras.ship.refresh import Refresher

    if engines(arguments.bundle) is not None:
        raise BundleError(f"{arguments.bundle} is an engine, which keeps no earlier generation: put back a copy of it")
    refresher = Refresher(arguments.bundle, corpus=Path())
    tell(refresher.rollback(arguments.to), arguments.json)
    return 0
