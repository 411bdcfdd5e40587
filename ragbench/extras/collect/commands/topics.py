"""`ragbench topics` (Queries and judgments): generate queries from documents or logs, and count them by type."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console, minimums
from ragbench.base.types import ConfigError, counted, did_you_mean
from ragbench.commands import WORDS

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Topic
    from ragbench.config.settings import Settings
    from ragbench.extras.collect.topics.collected import CollectedTopics

DESCRIPTION = "Count the queries of a benchmark by type, source and split, and show which types have too few."
EXAMPLES = """examples:
  ragbench topics
  ragbench topics data=vault data.corpus=notes data.queries=queries.csv
  ragbench topics derive data=vault data.corpus=notes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The data, output options."""
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Load the benchmark and count its queries."""
    from ragbench.config import composition
    from ragbench.extras.collect.topics.collected import count_by_type

    for word in arguments.overrides:
        if "=" not in word:
            raise ConfigError(
                f"ragbench topics has no sub-command '{word[:60]}'{did_you_mean(word, WORDS['topics'], 'sub-commands')}"
            )
    benchmark = composition.compose(arguments.overrides).benchmark()
    table = count_by_type(benchmark.topics)
    if arguments.json:
        console.print_json(table)
        return 0
    print_counts(benchmark.topics, f"{benchmark.name}: {counted(len(benchmark.topics), 'query')}")
    if table["short by"].any():
        print(f"A mean over fewer than {minimums.PER_TYPE} queries is unstable (Buckley and Voorhees 2000).")
    return 0


def add_file(parser: argparse.ArgumentParser) -> None:
    """The file to write, for the sub-commands that generate queries."""
    parser.add_argument(
        "--out", type=Path, default=Path("topics.jsonl"), metavar="FILE", help="output file (default topics.jsonl)"
    )
    parser.add_argument("--replace", action="store_true", help="overwrite an existing file")


def print_counts(topics: Sequence[Topic], title: str) -> None:
    """Print a table of the topics by type, source and split."""
    from ragbench.extras.collect.topics.collected import count_by_type

    table = count_by_type(topics).rename(columns={"short by": f"needed for {minimums.PER_TYPE}"})
    console.print_table(table, title)


def write_and_print(collected: CollectedTopics, title: str, arguments: argparse.Namespace) -> None:
    """Write the topics into `--out`, and print their numbers."""
    collected.write(arguments.out, replace=arguments.replace)
    if arguments.json:
        console.print_json({"file": arguments.out, **collected.as_json})
        return
    print_counts(collected.topics, title)
    for sentence in collected.sentences:
        print(sentence)


def print_next(settings: Settings, file: Path, more: str = "") -> None:
    """Print which file was written and what to do with it."""
    from ragbench.extras.collect.topics.collected import data_overrides

    overrides = f"{data_overrides(settings.overrides)}{more} {shlex.quote(f'data.queries={file}')}"
    print(f"wrote {file}; read and correct it, then use it with{overrides}")
    console.next_command(f"run -m exp=baseline,recommended{overrides}")
