"""`ragbench topics threads`: take user questions from an issue tracker or forum."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench.base import console, files
from ragbench.base.console import counted
from ragbench.base.errors import BenchmarkError
from ragbench.base.options import as_options
from ragbench.extras.collect.commands.topics import print_counts, print_next

DESCRIPTION = """Take user questions from an issue tracker or forum, judged by the pages that answers link to.

The folder --out gets topics.jsonl and review.csv, a sheet to drop or shorten questions."""
EXAMPLES = """examples:
  ragbench topics threads issues.json --site https://docs.example.org data=vault data.corpus=docs
  ragbench topics threads issues.json --site https://docs.example.org --redirects moved.txt --per-page 3
then: ragbench topics threads-reviewed questions/review.csv
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
    parser.add_argument(
        "--per-page", type=int, default=5, metavar="N", help="maximum number of queries for each page (default 5)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("questions"), metavar="FOLDER", help="output folder (default questions)"
    )
    parser.add_argument("--replace", action="store_true", help="overwrite existing files")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the threads, choose questions, write them with a sheet to review."""
    from ragbench.benchmark.lines import write_atomically
    from ragbench.benchmark.redirects import read_redirect_file
    from ragbench.config import composition
    from ragbench.extras.collect.topics import threads
    from ragbench.extras.collect.topics.collected import require_new

    settings = composition.compose(arguments.overrides)
    with as_options():
        spec = threads.ThreadSpec(per_page=arguments.per_page)
    sheet, path = arguments.out / "review.csv", arguments.out / "topics.jsonl"
    require_new(path, replace=arguments.replace)
    issue_threads = threads.read(arguments.file)
    moved = read_redirect_file(arguments.redirects) if arguments.redirects else None
    benchmark = settings.documents()
    pages = threads.Pages(benchmark.documents, arguments.site, moved)
    topics = threads.choose(issue_threads, pages, spec).by_file(benchmark)
    if all(topic.type == threads.NAMED for topic in topics.topics):
        raise BenchmarkError(
            f"none of {len(issue_threads)} threads links to a document below {arguments.site}: name the address under "
            "which data.corpus is published, and old paths with --redirects"
        )
    text = topics.review_sheet()
    if sheet.exists() and not arguments.replace and not files.has_text(sheet, text):
        raise BenchmarkError(f"{sheet} exists already: rename it, or add --replace")
    write_atomically(sheet, text)  # first, so that a call that is killed in between can be repeated
    topics.write(path, replace=arguments.replace)
    if arguments.json:
        console.print_json({"file": path, "review": sheet, "threads": len(issue_threads), **topics.as_json})
        return 0
    print_counts(topics.topics, f"{counted(len(topics.topics), 'topic')} of {counted(len(issue_threads), 'thread')}")
    for sentence in topics.sentences:
        print(sentence)
    print(f"wrote {sheet}; put `no` into keep, or shorten text, then: ragbench topics threads-reviewed {sheet}")
    print_next(settings, path)
    return 0
