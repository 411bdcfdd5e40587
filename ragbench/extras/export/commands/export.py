"""`ragbench export` (Ship it): write a measured configuration for another system, or as a bundle that runs
elsewhere."""

from __future__ import annotations

import argparse
import logging
import shlex
from pathlib import Path

from ragbench.base import console, registry
from ragbench.base.types import short_path

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Write a measured configuration for production: a bundle that runs elsewhere, a configuration file of
another system, or a search in an engine; --format lists the installed formats.

The file and the output of this command list settings that the format cannot express. ragbench measures the translated
configuration on the queries of the run. If it loses more than --max-loss, or is not significantly better than the
baseline, you need --force."""
EXAMPLES = """examples:
  ragbench export --arm rerank                        an arm of the newest run, as a bundle
  ragbench export @1/phase3 --format ragdocs --out config.toml
  ragbench export 3f2a... --out tracked --force       an MLflow run by its id
then: ragbench verify bundle
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arm, the format, and where to write."""
    console.add_runs(parser, "?")
    parser.add_argument("--arm", metavar="ARM", help="arm to export (default: the only one)")
    parser.add_argument(
        "--format",
        metavar="FORMAT",
        default="ragbench",
        help=f"{', '.join(registry.names('export'))} (default: ragbench, a bundle)",
    )
    parser.add_argument(
        "--load",
        metavar="ADDRESS",
        help="load the search into this server; env:NAME reads an address with a password from an environment variable",
    )
    parser.add_argument(
        "--out", metavar="PATH", type=Path, help="output file or folder (default: in the folder of the run)"
    )
    parser.add_argument("--baseline", metavar="ARM", help="arm that the exported one must beat (default: the first)")
    parser.add_argument(
        "--force",
        action="store_true",
        help="export an arm whose gain is not significant, or a translation above --max-loss",
    )
    parser.add_argument(
        "--accept-predicted",
        action="store_true",
        help="export an arm whose gain is not significant, if other collections predict one",
    )
    parser.add_argument(
        "--max-loss",
        type=float,
        default=0.005,
        metavar="X",
        help="maximum nDCG@10 loss of a translation without --force (default 0.005)",
    )
    parser.add_argument(
        "--self-contained",
        action="store_true",
        help="include model weights and Lucene: the bundle then needs only the packages in requirements/serve.txt",
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Find the arm, weigh its evidence, write, say what is missing."""
    from ragbench.extras.export.file_format import write
    from ragbench.workbench.runs import named_runs

    (folder,), _ = named_runs(arguments.words, limit=1)
    with console.progress(arguments.quiet or arguments.json):
        written = write(
            folder,
            arguments.out.expanduser() if arguments.out else None,
            arm=arguments.arm,
            format=arguments.format,
            load=arguments.load,
            baseline=arguments.baseline,
            force=arguments.force,
            on_expectation=arguments.accept_predicted,
            max_loss=arguments.max_loss,
            self_contained=arguments.self_contained,
        )
    evidence = written.evidence
    if arguments.json:
        console.print_json(
            {
                "out": written.out,
                "format": written.format,
                "gain": evidence.gain,
                "evidence": evidence.sentence,
                "caution": evidence.caution,
                "not_expressed": written.missing,
                "replay": written.replay,
            }
        )
        return 0
    for sentence in written.missing:
        _LOG.info(f"not expressed: {sentence}" if written.format != "ragbench" else f"note: {sentence}")
    if evidence.caution:
        _LOG.warning(evidence.caution)
    else:
        _LOG.info(f"evidence: {evidence.sentence}")
    if written.replay is not None:
        print(written.replay.sentence)
    location = short_path(written.out)
    print(f"wrote {location}: {'bundle' if written.format == 'ragbench' else written.format} of {written.arm}")
    if written.verifiable:
        console.next_command(f"verify {shlex.quote(arguments.load or location)}")
    return 0
