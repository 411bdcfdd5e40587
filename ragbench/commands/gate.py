"""`ragbench gate`."""

from __future__ import annotations

import argparse

from ragbench import console

DESCRIPTION = """Compare two finished runs as a regression gate; exit code 1 when the candidate is worse.

Worse is the verdict of the baseline's own policy: surely lower quality of documents or of passages, or a p95 that is
surely higher than the budget allows."""
EXAMPLES = """examples:
  ragbench gate --baseline @2 --candidate @1
  ragbench gate --baseline results/runs/A/arms/phase1 --candidate @1/phase3
  ragbench gate --baseline 3f2a... --candidate results/runs/B --drop 0.01 --latency-tolerance 0.5
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Both runs, the limits, overrides and output options."""
    parser.add_argument(
        "--baseline", required=True, metavar="RUN", help="a run or an arm: its folder, a part of its name, @2, @1/ARM"
    )
    parser.add_argument("--candidate", required=True, metavar="RUN", help="the run that must not be worse")
    parser.add_argument("--measure", metavar="NAME", help="the measure of documents (default: that of the baseline)")
    parser.add_argument(
        "--drop", type=float, metavar="X", help="how much lower it may be for sure (default: any sure loss fails)"
    )
    parser.add_argument(
        "--latency-tolerance",
        type=float,
        metavar="SHARE",
        help="how much higher p95 may be, as a share (default: the recorded budget in milliseconds)",
    )
    parser.add_argument("--confidence", type=float, help="how sure a loss must be (default: that of the baseline)")
    parser.add_argument(
        "--changed-data", action="store_true", help="compare although documents, queries or judgments changed"
    )
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compare and print; 1 when the candidate is worse."""
    from ragbench import app
    from ragbench.bounds import as_options
    from ragbench.commands.verify import show
    from ragbench.experiment import ledger
    from ragbench.export import measured_arm
    from ragbench.export.gate import Limits, gate
    from ragbench.workbench.runs import find

    with as_options():
        limits = Limits(
            arguments.measure,
            arguments.drop,
            arguments.latency_tolerance,
            arguments.confidence,
            arguments.changed_data,
        )
    settings = app.compose(arguments.overrides)
    baseline = measured_arm.find(find(arguments.baseline, settings, console.say))
    candidate = measured_arm.find(find(arguments.candidate, settings, console.say))
    checks = gate(baseline, candidate, limits)
    seen = [baseline.results.folder.name, baseline.name, candidate.name, limits]
    ledger.of_results(settings.results, candidate.results, "gate", seen)
    return show(checks, arguments.json)
