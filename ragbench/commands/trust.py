"""`ragbench trust`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench.base import console
from ragbench.base.errors import ConfigError

DESCRIPTION = """Trust the project file of a folder, or a bundle: what it sends or starts is no longer refused.

A ragbench.yaml or bundle that comes from somebody else may name servers, programs and classes. Commands refuse these
until you have read the file and trusted it; when it changes, they ask again. What your own commands write is trusted,
and so is a bundle that is signed with the --key you name."""
EXAMPLES = """examples:
  ragbench trust
  ragbench trust ~/src/handbook
  ragbench trust bundle
  ragbench trust --forget
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folder, and whether to trust it no longer."""
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="a folder of the project, or a bundle (default: this)"
    )
    parser.add_argument("--forget", action="store_true", help="trust it no longer")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Show the file and keep its digest."""
    from ragbench.boundary import trust
    from ragbench.config import project
    from ragbench.export.bundle import CONFIG, RECORD

    folder = arguments.folder.expanduser()
    file = folder / CONFIG
    if not (folder / RECORD).is_file():
        found = project.find(folder)
        if found is None:
            raise ConfigError(f"{folder} has no {project.FILE}, nor has a folder above it: name another folder")
        file = found.file
    (trust.forget if arguments.forget else trust.trust)(file)
    trusted = not arguments.forget
    if arguments.json:
        console.print_json({"file": str(file), "trusted": trusted})
    else:
        print(f"{file} is trusted until it changes" if trusted else f"{file} is trusted no longer")
    return 0
