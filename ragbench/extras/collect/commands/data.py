"""`ragbench data` (Queries and judgments): check a benchmark, or pool unjudged results."""

from __future__ import annotations

import argparse

from ragbench.base.types import ConfigError
from ragbench.commands import WORDS

_WORDS = ", ".join(WORDS["data"])

DESCRIPTION = "Check the queries and judgments of a benchmark, or collect results to judge."
EXAMPLES = """examples:
  ragbench data check data=vault data.corpus=notes data.queries=queries.csv
  ragbench data power @1
  ragbench data pool @1
  ragbench data comparisons
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with the data."""
    parser.add_argument(
        "words", nargs="*", metavar="what|key=value", help=f"sub-command ({_WORDS}), then its arguments"
    )


def main(arguments: argparse.Namespace) -> int:
    """Refuse: no sub-command was named first."""
    raise ConfigError(
        f"ragbench data takes one of {_WORDS} as its first word, got {' '.join(arguments.words) or 'none'}"
    )
