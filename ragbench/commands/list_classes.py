"""`ragbench list classes`."""

from __future__ import annotations

import argparse
import re

from ragbench.base import console
from ragbench.base.errors import ConfigError

DESCRIPTION = "Say which class P3 gives a query, or how often its class agrees with the type in the benchmark."
EXAMPLES = """examples:
  ragbench list classes "getUserById function"
  ragbench list classes                    accuracy and confusion over the benchmark's training queries
  ragbench list classes split=test
"""

# The first word may be an override instead of the query.
_OVERRIDE = re.compile(r"[+~]*[\w./@]+=\S*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The query, overrides and output options."""
    parser.add_argument("query", nargs="?", help="a query; without one, the benchmark's queries are classified")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Classify one query or all."""
    from ragbench.config import composition
    from ragbench.search.stages.classify import classify

    if arguments.query is not None and _OVERRIDE.fullmatch(arguments.query):
        arguments.overrides.insert(0, arguments.query)
        arguments.query = None
    if arguments.query is not None:
        if not arguments.query.strip():
            raise ConfigError("the query is empty: say what to classify")
        if arguments.overrides:
            composition.compose(arguments.overrides)  # they do not change the class, but a mistake in them is refused
        found = classify(arguments.query)
        if arguments.json:
            console.print_json({"query": arguments.query, "class": found})
        else:
            print(found)
        return 0
    from ragbench.config.benchmark import load
    from ragbench.evaluation.classification import agreement

    asked = any(override.startswith("split=") for override in arguments.overrides)
    settings = composition.compose(arguments.overrides if asked else [*arguments.overrides, "split=train"])
    benchmark = load(settings.config)
    result = agreement(benchmark.select(settings.split))
    if arguments.json:
        console.print_json(
            {
                "benchmark": benchmark.name,
                "split": settings.split,
                "queries": result.n,
                "accuracy": result.accuracy,
                "baseline": result.baseline,
                "types": result.confusion.to_dict(orient="records"),
            }
        )
        return 0
    console.print_table(result.confusion, f"{benchmark.name}, split {settings.split}: classes of P3 by type of query")
    print(
        f"accuracy {result.accuracy:.3f} over {result.n} queries; "
        f"always answering the most frequent class would reach {result.baseline:.3f}"
    )
    return 0
