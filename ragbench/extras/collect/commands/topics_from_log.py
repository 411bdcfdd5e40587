"""`ragbench topics from-log`: sample user queries from a search log."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from ragbench.base import console
from ragbench.base.options import as_options
from ragbench.base.types import counted
from ragbench.extras.collect.commands.topics import add_file, print_next, write_and_print

_LOG = logging.getLogger(__name__)

DESCRIPTION = "Sample queries from a search log by frequency, and judge documents by their clicks."
EXAMPLES = """examples:
  ragbench topics from-log searches.jsonl data=vault data.corpus=notes
  ragbench topics from-log export.csv --limit 200 --tail 0.3 --least-sessions 3
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The log, the data, the sample, where to write, output options."""
    parser.add_argument("file", type=Path, help="the search log: JSONL or CSV")
    console.add_overrides(parser)
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="number of queries (default 100)")
    parser.add_argument(
        "--tail",
        type=float,
        default=0.25,
        metavar="SHARE",
        help="share of the sample for queries that were sent only once (default 0.25)",
    )
    parser.add_argument(
        "--least-sessions", type=int, default=1, metavar="N", help="minimum number of sessions with a query (default 1)"
    )
    add_file(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the log, sample queries, write them."""
    from ragbench.config import composition
    from ragbench.extras.collect import search_log
    from ragbench.extras.collect.topics import from_log

    settings = composition.compose(arguments.overrides)
    with as_options():
        spec = from_log.LogSpec(arguments.limit, arguments.tail, least_sessions=arguments.least_sessions)
    log = search_log.read(arguments.file)
    benchmark = settings.documents() if log.has_clicks else None
    topics = from_log.choose(log, spec, from_log.finder(benchmark.documents if benchmark else ()))
    topics = topics.by_file(benchmark) if benchmark else topics
    n_topics, n_queries = counted(len(topics.topics), "topic"), counted(topics.queries, "query")
    write_and_print(topics, f"{n_topics} of {n_queries} in {topics.searches} searches", arguments)
    for reason, count in log.skipped.items():
        if reason.startswith("with "):
            _LOG.warning(f"{count} searches {reason} are excluded; read {arguments.out} before you share it")
    if topics.in_collection < topics.named:
        _LOG.warning(
            f"{topics.named - topics.in_collection} of {topics.named} relevant documents of the log are not "
            "in this collection: name its data with data=vault data.corpus=FOLDER"
        )
    if not arguments.json:
        print_next(settings, arguments.out)
    return 0
