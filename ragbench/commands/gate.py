"""`ragbench gate`."""

from __future__ import annotations

import argparse

from ragbench import console

DESCRIPTION = """Compare two finished runs as a regression gate; exit code 1 when the candidate is worse.

Worse is a quality that is lower with confidence, or a p95 that is higher than the tolerance allows."""
EXAMPLES = """examples:
  ragbench gate --baseline results/runs/A --candidate results/runs/B
  ragbench gate --baseline results/runs/A/arms/phase1 --candidate results/runs/A/arms/phase3
  ragbench gate --baseline 3f2a... --candidate results/runs/B --drop 0.01 --latency-tolerance 0.5
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Both runs, the limits, overrides and output options."""
    parser.add_argument("--baseline", required=True, metavar="RUN", help="a run's or arm's folder, or an MLflow id")
    parser.add_argument("--candidate", required=True, metavar="RUN", help="the run that must not be worse")
    parser.add_argument("--measure", default="nDCG@10", help="the measure to compare (default nDCG@10)")
    parser.add_argument("--drop", type=float, default=0.0, metavar="X", help="how much lower it may be (default 0)")
    parser.add_argument(
        "--latency-tolerance",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="how much higher p95 may be (default 0.2: a fifth)",
    )
    parser.add_argument("--confidence", type=float, default=0.95, help="how sure a loss must be (default 0.95)")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compare and print; 1 when the candidate is worse."""
    from ragbench.bounds import as_options
    from ragbench.commands.export import run_folder
    from ragbench.commands.verify import show
    from ragbench.export import measured
    from ragbench.export.gate import Limits, gate

    with as_options():
        limits = Limits(arguments.measure, arguments.drop, arguments.latency_tolerance, arguments.confidence)
    baseline = measured.find(run_folder(arguments.baseline, arguments.overrides))
    candidate = measured.find(run_folder(arguments.candidate, arguments.overrides))
    return show(gate(baseline, candidate, limits), arguments.json)
