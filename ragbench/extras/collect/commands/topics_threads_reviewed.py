"""`ragbench topics threads-reviewed`: keep the questions of a review sheet."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench.base import console
from ragbench.base.console import counted
from ragbench.extras.collect.commands.topics import print_next

DESCRIPTION = "Write topics.jsonl again with the questions that a review sheet of ragbench topics threads keeps."
EXAMPLES = """examples:
  ragbench topics threads-reviewed questions/review.csv data=vault data.corpus=docs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sheet, the data for the next command, output options."""
    parser.add_argument("sheet", type=Path, help="the review.csv of ragbench topics threads")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the sheet and write what it keeps."""
    from ragbench.config import composition
    from ragbench.extras.collect.topics import threads

    settings = composition.compose(arguments.overrides)
    topics, dropped = threads.read_review(arguments.sheet)
    path = arguments.sheet.with_name("topics.jsonl")
    topics.write(path, replace=True)
    if arguments.json:
        console.print_json({"file": path, "topics": len(topics.topics), "dropped": dropped})
        return 0
    print(f"{counted(len(topics.topics), 'topic')} kept, {dropped} dropped")
    print_next(settings, path)
    return 0
