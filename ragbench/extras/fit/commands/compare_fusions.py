"""`ragbench compare fusions`."""

from __future__ import annotations

import argparse
import logging

from ragbench.base import console

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Compare fusion methods on the result lists of a finished run, without searching again.

It uses the training queries of the run. The methods are those of the stage `fuse`, which you can turn on, and those of
ranx if it is installed (pip install "ragbench[fusion]")."""
EXAMPLES = """examples:
  ragbench run exp=recommended split=train && ragbench compare fusions
  ragbench compare fusions @2 --arm recommended                 the previous run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run and arm."""
    parser.add_argument("--arm", metavar="ARM", help="arm whose retrievers are fused (default: the last)")
    console.add_runs(parser, "?")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the sources' rankings, fuse them in every way, print the ways by what they reach."""
    from ragbench.extras.fit import fusions
    from ragbench.results import measurements
    from ragbench.workbench.runs import named_runs

    (folder,), _ = named_runs(arguments.words, limit=1)
    with console.progress(arguments.quiet or arguments.json):
        compared = fusions.compare(measurements.load(folder), arguments.arm)
    if arguments.json:
        console.print_json({"arm": compared.arm, "topics": compared.topics, "ways": compared.table})
        return 0
    columns = compared.table.drop(columns="use")
    retrievers = ", ".join(compared.sources)
    title = f"Fusions of {retrievers} ({compared.arm}): nDCG@10 of documents, {compared.topics} training topics"
    console.print_table(columns, title)
    print("\n".join(compared.sentences))
    if not fusions.has_ranx():
        _LOG.info('note: the methods of the literature are skipped: pip install "ragbench[fusion]"')
    return 0
