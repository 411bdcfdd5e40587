"""`ragbench trust`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench import console

DESCRIPTION = """Trust the project file of this folder, or of another: what it sends or starts is no longer refused.

A ragbench.yaml that comes with somebody else's files may name servers, programs and classes. Commands refuse these
until you have read the file and trusted it; when it changes, they ask again. What ragbench init writes is trusted."""
EXAMPLES = """examples:
  ragbench trust
  ragbench trust ~/src/handbook
  ragbench trust --forget
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folder, and whether to trust it no longer."""
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="a folder of the project (default: this)")
    parser.add_argument("--forget", action="store_true", help="trust it no longer")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Show the file and keep its digest."""
    from ragbench import project
    from ragbench.boundary import trust
    from ragbench.errors import ConfigError

    found = project.find(arguments.folder.expanduser())
    if found is None:
        raise ConfigError(f"{arguments.folder} has no {project.FILE}, nor has a folder above it: name another folder")
    if arguments.forget:
        trust.forget(found.file)
    else:
        trust.trust(found.file)
    trusted = not arguments.forget
    if arguments.json:
        console.print_json({"file": str(found.file), "trusted": trusted})
    else:
        print(f"{found.file} is trusted until it changes" if trusted else f"{found.file} is trusted no longer")
    return 0
