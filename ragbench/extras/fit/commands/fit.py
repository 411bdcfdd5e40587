"""`ragbench fit` (Improve it): train a calibration or a ranker on judged queries."""

from __future__ import annotations

import argparse

from ragbench.base.types import ConfigError
from ragbench.commands import WORDS

_WORDS = ", ".join(WORDS["fit"])

DESCRIPTION = """Train part of a search on judged queries, and report the gain on held-out queries.

With --write, the result is saved as an option of the configuration. Otherwise the settings that use it are printed."""
EXAMPLES = """examples:
  ragbench fit calibration --write mine              for calibration=mine
  ragbench fit ranker exp=recommended --write mine   for ranker=mine
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to fit."""
    parser.add_argument(
        "words", nargs="*", metavar="what|key=value", help=f"sub-command ({_WORDS}), then its arguments"
    )


def main(arguments: argparse.Namespace) -> int:
    """Refuse: no sub-command was named first."""
    raise ConfigError(
        f"ragbench fit takes one of {_WORDS} as its first word, got {' '.join(arguments.words) or 'none'}"
    )
