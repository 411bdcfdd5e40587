"""`ragbench refresh` (Ship it): re-index changed files in a bundle and report drift."""

from __future__ import annotations

import argparse
import logging
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console
from ragbench.base.types import RagbenchError
from ragbench.extras.ship.address import parse_location

if TYPE_CHECKING:
    from ragbench.extras.ship.deployment import Follower
    from ragbench.extras.ship.refresh import Refreshed

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Update a bundle with changed, new and deleted files, without a new experiment.

Only new text is embedded. The new index generation is complete before it replaces the current one, and the golden
queries are replayed. The drift from the measured documents and results is printed and stored in the bundle. If a file
cannot be read, its earlier version stays, and a warning names it."""
EXAMPLES = """examples:
  ragbench refresh bundle                       from the folder that the bundle names
  ragbench refresh bundle --corpus ~/notes
  ragbench refresh bundle --corpus ~/notes --watch      and again whenever a file changes, until Ctrl-C
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle, its documents, output options."""
    parser.add_argument("bundle", type=parse_location, help="bundle folder or SQLite file written by ragbench export")
    parser.add_argument("--corpus", type=Path, metavar="PATH", help="the folder of the documents")
    parser.add_argument("--watch", action="store_true", help="keep running, and refresh whenever a file changes")
    parser.add_argument(
        "--allow-shrink", action="store_true", help="refresh even if more than half of the documents are gone"
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Refresh, once or for as long as asked."""
    from ragbench.extras.ship.deployment import deployment

    with console.progress(arguments.quiet or arguments.json):
        follower = deployment(arguments.bundle).follower(arguments.corpus)
        refreshed = follower.refresh(arguments.allow_shrink)
        tell(refreshed, arguments.json)
    if refreshed.anything and not arguments.json and not arguments.watch:
        print("a server that runs loads it by itself")
        console.next_command(shlex.join(["verify", str(arguments.bundle)]))
    if arguments.watch:
        _follow(follower, refreshed, arguments)
    return 0


def _follow(follower: Follower, refreshed: Refreshed, arguments: argparse.Namespace) -> None:
    """Refresh whenever a file changes or another bundle replaces this one, until Ctrl-C."""
    import gc

    from ragbench.extras.ship.refresh import changes

    gc.disable()  # it takes a fifth of the time of a refresh: garbage is collected after it
    try:
        for _ in changes(follower.corpus, follower.beside):
            previous = refreshed.generation
            try:
                refreshed = follower.refresh(arguments.allow_shrink)
            except (RagbenchError, OSError) as error:  # the folder may have been exchanged meanwhile
                _LOG.warning(f"the bundle stays as it is ({error})")
            else:
                if refreshed.generation != previous:
                    tell(refreshed, arguments.json)
            gc.collect()
    finally:
        gc.enable()


def tell(refreshed: Refreshed, as_json: bool) -> None:
    """Print what answers now."""
    served, drift = refreshed.generation, refreshed.generation.drift
    for sentence in served.kept:
        _LOG.info(f"kept as it was: {sentence}")
    if as_json:
        documents = {"generation": served.number, "documents": len(served.modified)}
        files = {name: getattr(refreshed, name) for name in ("added", "changed", "deleted")}
        console.print_json({**documents, **files, "kept": served.kept, "drift": drift})
        return
    if not refreshed.anything:
        print(f"nothing has changed; generation {served.number} stays in service", flush=True)
        return
    counts = f"{len(refreshed.added)} added, {len(refreshed.changed)} changed, {len(refreshed.deleted)} deleted"
    print(
        f"generation {served.number} is in service: {counts}; {drift.chunks_changed:.1%} of the chunks differ from the "
        f"measured ones, golden queries keep {drift.agreement:.1%} of their top results",
        flush=True,
    )
