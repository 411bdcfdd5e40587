"""`ragbench gate`."""

from __future__ import annotations

import argparse

from ragbench import console

DESCRIPTION = """Compare two finished runs as a regression gate; exit code 1 when the candidate is worse.

Worse is the verdict of the baseline's own policy: surely lower quality of documents or of passages, or a p95 that is
surely higher than the budget allows."""
EXAMPLES = """examples:
  ragbench gate                                         the newest run against the one before
  ragbench gate @2/phase1 @1/phase1                     an arm of each
  ragbench gate results/runs/A results/runs/B --drop 0.01 --latency-tolerance 0.5
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Both runs, the limits, overrides and output options."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="run|key=value",
        help="the run to compare with (default: @2) and the one that must not be worse (default: @1), each a folder, "
        "a part of its name, @2 or @2/ARM; settings",
    )
    for name in ("--baseline", "--candidate"):  # their old names
        parser.add_argument(name, metavar="RUN", help=argparse.SUPPRESS)
    parser.add_argument("--measure", metavar="NAME", help="the measure of documents (default: that of the baseline)")
    parser.add_argument(
        "--drop", type=float, metavar="X", help="a sure loss that is still allowed (default: any sure loss fails)"
    )
    parser.add_argument(
        "--latency-tolerance",
        type=float,
        metavar="SHARE",
        help="how much higher p95 may be, as a share (default: the recorded budget in milliseconds)",
    )
    parser.add_argument(
        "--confidence", metavar="SHARE", type=float, help="how sure a loss must be (default: that of the baseline)"
    )
    parser.add_argument(
        "--changed-data", action="store_true", help="compare although documents, queries or judgments changed"
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compare and print; 1 when the candidate is worse."""
    from ragbench import app
    from ragbench.bounds import as_options
    from ragbench.commands.verify import show
    from ragbench.errors import ConfigError
    from ragbench.experiment import ledger
    from ragbench.export import measured_arm
    from ragbench.export.gate import Limits, gate
    from ragbench.workbench.runs import find, split_words

    with as_options():
        limits = Limits(
            arguments.measure,
            arguments.drop,
            arguments.latency_tolerance,
            arguments.confidence,
            arguments.changed_data,
        )
    named, overrides = split_words(arguments.words)
    by_option = [name for name in (arguments.baseline, arguments.candidate) if name]
    if len(named) > 2 or (named and by_option):
        raise ConfigError(f"two runs are compared, got {', '.join([*by_option, *named])}: ragbench gate OLD NEW")
    settings = app.compose(overrides)
    first, second = ([*named, "@1"] if named else [arguments.baseline or "@2", arguments.candidate or "@1"])[:2]
    baseline, candidate = (measured_arm.find(find(name, settings, console.say)) for name in (first, second))
    checks = gate(baseline, candidate, limits)
    seen = [baseline.results.folder.name, baseline.name, candidate.name, limits]
    ledger.of_results(settings.results, candidate.results, "gate", seen)
    return show(checks, arguments.json)
