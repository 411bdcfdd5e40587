"""`ragbench topics threads`: take user questions from an issue tracker or forum."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench.base import console
from ragbench.base.types import BenchmarkError, counted
from ragbench.extras.collect.commands.topics import add_file, print_next, write_and_print

DESCRIPTION = """Take user questions from an issue tracker or forum, judged by the pages that answers link to.

Read the questions before you use them: delete lines of the file, or shorten a text."""
EXAMPLES = """examples:
  ragbench topics threads issues.json --site https://docs.example.org data=vault data.corpus=docs
  ragbench topics threads issues.json --site https://docs.example.org --redirects moved.txt
then: ragbench run -m exp=baseline,recommended data=vault data.corpus=docs data.queries=topics.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The threads, the site, the data, where to write, output options."""
    parser.add_argument("file", type=Path, help="the threads: JSON, JSONL or CSV")
    console.add_overrides(parser)
    parser.add_argument(
        "--site", required=True, metavar="URL", help="base URL of the published documents; links to it become judgments"
    )
    parser.add_argument(
        "--redirects",
        type=Path,
        metavar="FILE",
        help="redirects of the site: a file of its tools, such as _redirects, or lines `OLD NEW` of paths",
    )
    add_file(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the threads, choose questions, write them."""
    from ragbench.config import composition
    from ragbench.extras.collect.topics import threads
    from ragbench.extras.follow.redirects import read_redirect_file

    settings = composition.compose(arguments.overrides)
    issue_threads = threads.read(arguments.file)
    moved = read_redirect_file(arguments.redirects) if arguments.redirects else None
    benchmark = settings.documents()
    pages = threads.Pages(benchmark.documents, arguments.site, moved)
    topics = threads.choose(issue_threads, pages).by_file(benchmark)
    if all(topic.type == threads.NAMED for topic in topics.topics):
        raise BenchmarkError(
            f"none of {len(issue_threads)} threads links to a document below {arguments.site}: name the address under "
            "which data.corpus is published, and old paths with --redirects"
        )
    n_topics, n_threads = counted(len(topics.topics), "topic"), counted(len(issue_threads), "thread")
    write_and_print(topics, f"{n_topics} of {n_threads}", arguments)
    if not arguments.json:
        print_next(settings, arguments.out)
    return 0
