"""`ragbench list config`: print the composed configuration and the pipeline as a sentence."""

from __future__ import annotations

import argparse

from ragbench.base import console
from ragbench.base.fingerprint import plain

DESCRIPTION = "Compose a configuration, check it, and print the pipeline as a sentence and every value."
EXAMPLES = """examples:
  ragbench list config exp=all
  ragbench list config exp=all p6=off --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Overrides and output options."""
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compose and print."""
    from ragbench.config import composition

    settings = composition.compose(arguments.overrides)
    if arguments.json:
        console.print_json(plain(settings.config))
        return 0
    import yaml

    print(f"# {settings.pipeline!r}")
    print(yaml.safe_dump(plain(settings.config), sort_keys=False), end="")
    return 0
