"""`ragbench data check`: errors in queries and judgments that distort results."""

from __future__ import annotations

import argparse
import logging
from collections import Counter

from ragbench.base import console
from ragbench.base.types import FAILED

_LOG = logging.getLogger(__name__)

DESCRIPTION = "Check a benchmark for errors that distort results. The exit code is 1 if there are errors."
EXAMPLES = """examples:
  ragbench data check
  ragbench data check data=native data.corpus=notes data.qrels=my-qrels
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The data, output options."""
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Load the benchmark, check it and print the findings."""
    from ragbench.config import composition
    from ragbench.extras.collect.check import check
    from ragbench.extras.collect.topics.collected import data_overrides

    settings = composition.compose(arguments.overrides)
    benchmark = settings.benchmark()
    for warning in benchmark.warnings:
        _LOG.warning(warning)
    findings = check(benchmark)
    counts = Counter(finding.severity for finding in findings)
    code = FAILED if counts["error"] else 0
    if arguments.json:
        console.print_json(findings)
        return code
    for note in benchmark.notes:
        print(note)
    if findings:
        console.print_table([vars(finding) for finding in findings])
    numbers = [(counts[severity], severity) for severity in ("error", "warning", "note")]
    print(", ".join(f"{number} {severity}{'s' * (number != 1)}" for number, severity in numbers))
    if not counts["error"]:
        console.next_command(f"run{data_overrides(settings.overrides, ('data', 'links', 'topics'))}")
    return code
