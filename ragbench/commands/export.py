"""`ragbench export`."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from pathlib import Path
from typing import Any

from ragbench.base import console

DESCRIPTION = """Write a measured configuration for production: a bundle that runs elsewhere, a configuration file of
ragdocs or Librarian, or a search in SQLite, PostgreSQL, LanceDB, Qdrant, OpenSearch or Elasticsearch (without --load,
the last three get a file of requests that make them search like this).

What a format cannot express is listed in the file and here. What the other system will run is measured on the run's
topics: a loss of more than --max-loss needs --force. A configuration whose gain over the run's first arm (or
--baseline) is not established needs --force, and the export reports it."""
EXAMPLES = """examples:
  ragbench export --arm rerank                        an arm of the newest run, as a bundle
  ragbench export @1/phase3 --format ragdocs --version 2026-08 --out config.toml
  ragbench export 3f2a... --format librarian --out config.json --force    an MLflow run by its id
  ragbench export @1/hybrid --format opensearch --out opensearch.json
  ragbench export @1 --format qdrant --load qdrant://localhost:6333/notes
  ragbench export @1 --format lancedb --load lancedb:///srv/notes
  ragbench export @1/hybrid --format postgres --load 'postgres://localhost/docs?schema=notes'
  ragbench export --without-index                     built again where it is used
then: ragbench verify bundle
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arm, the format, and where to write."""
    from ragbench.export.file_format import formats

    console.add_runs(parser, "?")
    parser.add_argument("--arm", metavar="ARM", help="the arm (default: the only one)")
    parser.add_argument(
        "--format", metavar="FORMAT", default="ragbench", help=f"{', '.join(formats())} (default: ragbench, a bundle)"
    )
    parser.add_argument(
        "--load",
        metavar="ADDRESS",
        help="load the search into this server, or folder of LanceDB; env:NAME or file:PATH name what holds an address "
        "with a password",
    )
    parser.add_argument("--version", metavar="VERSION", help="of ragdocs: 2026-01 or 2026-08")
    parser.add_argument("--out", metavar="PATH", type=Path, help="where to write (default: below the run)")
    parser.add_argument("--baseline", metavar="ARM", help="the arm that it must be better than (default: the first)")
    parser.add_argument("--force", action="store_true", help="export although its gain is not established")
    parser.add_argument(
        "--accept-predicted", action="store_true", help="export although its gain is open, if the atlas expects one"
    )
    parser.add_argument(
        "--max-loss",
        type=float,
        default=0.005,
        metavar="X",
        help="nDCG@10 that a translation may lose without --force (default 0.005)",
    )
    parser.add_argument("--on-expectation", action="store_true", dest="accept_predicted", help=argparse.SUPPRESS)
    parser.add_argument(
        "--allow-unknown-latency", action="store_true", help="export a significantly better arm of unknown latency"
    )
    parser.add_argument("--cost-open", action="store_true", dest="allow_unknown_latency", help=argparse.SUPPRESS)
    parser.add_argument("--without-index", action="store_true", help="leave the index out of a bundle")
    parser.add_argument(
        "--self-contained",
        action="store_true",
        help="with weights and Lucene, for an install of requirements-serve.txt",
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Find the arm, weigh its evidence, write, say what is missing."""
    from ragbench.export.write import write
    from ragbench.workbench.runs import named_runs

    (folder,), _ = named_runs(arguments.words, most=1)
    with console.progress(arguments.quiet or arguments.json) as progress:
        written = write(
            folder,
            arguments.out.expanduser() if arguments.out else None,
            arm=arguments.arm,
            format=arguments.format,
            load=arguments.load,
            version=arguments.version,
            baseline=arguments.baseline,
            force=arguments.force,
            on_expectation=arguments.accept_predicted,
            max_loss=arguments.max_loss,
            cost_open=arguments.allow_unknown_latency,
            include_index=not arguments.without_index,
            self_contained=arguments.self_contained,
            progress=progress,
            say=console.say,
        )
    evidence = written.evidence
    if arguments.json:
        values: dict[str, Any] = {
            "out": str(written.out),
            "format": written.format,
            "gain": evidence.gain,
            "evidence": evidence.sentence,
        }
        replay = dataclasses.asdict(written.replay) if written.replay else None
        values |= {"caution": written.caution, "not_expressed": list(written.missing), "replay": replay}
        console.print_json(values)
        return 0
    for sentence in written.missing:
        console.say(f"not expressed: {sentence}" if written.format != "ragbench" else f"note: {sentence}")
    console.say(f"warning: {written.caution}" if written.caution else f"evidence: {evidence.sentence}")
    if written.replay is not None:
        print(written.replay.sentence)
    where = console.short_path(written.out)
    print(f"{written.format} of {written.arm} in {where}")
    if arguments.load is not None or written.format in ("ragbench", "sqlite"):
        console.next_command(f"verify {shlex.quote(arguments.load or where)}")
    return 0
