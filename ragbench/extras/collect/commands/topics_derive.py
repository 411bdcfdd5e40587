"""`ragbench topics derive`: generate synthetic queries from the documents."""

from __future__ import annotations

import argparse

from ragbench.base import console
from ragbench.base.types import counted
from ragbench.extras.collect.commands.topics import add_file, print_next, write_and_print

DESCRIPTION = """Generate synthetic queries from the titles, links, descriptions and questions of the documents.

The number, the sources and the random seed are settings: topics.limit, topics.kinds, topics.seed."""
EXAMPLES = """examples:
  ragbench topics derive data=vault data.corpus=notes
  ragbench topics derive data=vault data.corpus=notes topics.limit=100 topics.kinds=[description,link]
then: ragbench run -m exp=baseline,phase1 data=vault data.corpus=notes topics=derived
or, after you have corrected the queries: ... data.queries=topics.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The data, where to write, output options."""
    console.add_overrides(parser)
    add_file(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the documents, choose queries, write them."""
    from ragbench.base.options import build
    from ragbench.config import composition
    from ragbench.config.benchmark import documents
    from ragbench.config.overrides import key_of
    from ragbench.extras.collect.topics.collected import data_overrides
    from ragbench.extras.collect.topics.derive import choose
    from ragbench.extras.collect.topics.spec import DeriveSpec

    overrides = arguments.overrides
    if "topics" not in {key_of(override) for override in overrides}:
        overrides = [*overrides, "topics=derived"]
    settings = composition.compose(overrides)
    options = {key: value for key, value in settings.topics.items() if key != "kind"}
    benchmark = documents(settings.data)
    topics = choose(benchmark.documents, build(DeriveSpec, options, "topics"), benchmark.name)
    n_topics, n_documents = (
        counted(len(topics.topics), "synthetic query"),
        counted(len(benchmark.documents), "document"),
    )
    write_and_print(topics.by_file(benchmark), f"{n_topics} from {n_documents}", arguments)
    if arguments.json:
        return 0
    if settings.data["loader"] == "vault":
        print_next(settings, arguments.out, " topics=given")
        return 0
    print(f"wrote {arguments.out}")
    console.next_command(f"run -m exp=baseline,recommended topics=derived{data_overrides(settings.overrides)}")
    return 0
