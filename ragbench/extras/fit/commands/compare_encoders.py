"""`ragbench compare encoders`."""

from __future__ import annotations

import argparse

from ragbench.base import console
from ragbench.base.errors import BoundaryError, ConfigError
from ragbench.boundary.yaml import read_yaml

DESCRIPTION = """Compare encoders in the same search: quality, indexing time, latency, and verdicts.

An encoder is a folder, a bundled model, draft, owner/model of the hub, or an endpoint (openai:MODEL, ollama:MODEL);
without one, all bundled models and draft are compared. The search is exp=recommended unless another one is named.
The query and passage prefixes of known models are set automatically."""
EXAMPLES = """examples:
  ragbench compare encoders
  ragbench compare encoders bge-small-en-v1.5 all-MiniLM-L6-v2 data=vault data.corpus=notes data.queries=queries.csv
  ragbench compare encoders bge-small-en-v1.5 models/mine exp=plain_hybrid split=train
  ragbench compare encoders 'encoders=[bge-small-en-v1.5, draft, openai:text-embedding-3-small]' split=train
"""
_LIST = "encoders="


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Encoders, overrides and output options."""
    parser.add_argument("words", nargs="*", metavar="encoder|key=value", help="encoders, and settings of the search")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure, time, print."""
    from ragbench.extras.fit.bakeoff import bakeoff
    from ragbench.report import tables

    overrides = [argument for argument in arguments.words if "=" in argument and not argument.startswith(_LIST)]
    named = [name for argument in arguments.words if argument not in overrides for name in encoders(argument)]
    with console.progress(arguments.quiet or arguments.json) as progress:
        result = bakeoff(named, *overrides, progress=progress)
    if arguments.json:
        verdicts = result.results.verdicts.to_dict(orient="records")
        rows = result.table.to_dict(orient="records")
        console.print_json({"folder": str(result.results.folder), "encoders": rows, "verdicts": verdicts})
        return 0
    formats = dict.fromkeys(("index s", "index MB", "encoder p95 ms", "query p95 ms"), ".1f")
    console.print_table(result.table, result.results.title_with_origin("Encoders in the same search"), formats)
    tables.show_verdicts(result.results, result.results.verdicts)
    print(result.results.whereabouts)
    return 0


def encoders(argument: str) -> list[str]:
    """The encoders that a word names: one, or those of `encoders=[a, b]`. Raises ConfigError."""
    if not argument.startswith(_LIST):
        return [argument]
    try:
        listed = read_yaml(argument.removeprefix(_LIST))
    except BoundaryError:
        listed = None
    names = [listed] if isinstance(listed, str) else listed
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"{argument} names no encoders: write {_LIST}[bge-small-en-v1.5,draft]")
    return names
