"""`ragbench topics draft`: let a language model draft queries about the documents."""

from __future__ import annotations

import argparse

from ragbench.base import console
from ragbench.base.types import ConfigError, counted
from ragbench.extras.collect import model_options
from ragbench.extras.collect.commands.topics import add_file, print_next, write_and_print

DESCRIPTION = (
    "Let a language model draft queries about sections of the documents, and keep those that pass several checks."
)
EXAMPLES = """examples:
  ragbench topics draft --endpoint http://localhost:11434/v1 --model NAME data=vault data.corpus=notes
then: ragbench run -m exp=baseline,recommended data=vault data.corpus=notes data.queries=topics.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The data, the model, the sample, where to write, output options."""
    console.add_overrides(parser)
    model_options.add(parser, "the language model; sections of the documents are sent to it")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="number of queries (default 100)")
    add_file(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the documents, ask the model, write the queries."""
    from ragbench.config import composition
    from ragbench.config.benchmark import documents
    from ragbench.extras.collect.topics.collected import require_new
    from ragbench.extras.collect.topics.draft import draft

    settings = composition.compose(arguments.overrides)
    if arguments.limit < 1:
        raise ConfigError(f"--limit must be at least 1, got {arguments.limit}")
    model = settings.models().chat(model_options.spec_of(arguments))
    require_new(arguments.out, replace=arguments.replace)
    benchmark = documents(settings.data)
    with console.progress(arguments.quiet or arguments.json):
        topics = draft(benchmark.documents, model.complete, arguments.limit)
    n_topics, n_documents = counted(len(topics.topics), "drafted topic"), counted(len(benchmark.documents), "document")
    write_and_print(topics.by_file(benchmark), f"{n_topics} from {n_documents}", arguments)
    if not arguments.json:
        print_next(settings, arguments.out)
    return 0
