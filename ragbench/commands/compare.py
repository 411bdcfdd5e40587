"""`ragbench compare` (Measure and compare): compare finished runs, and TREC run files of other systems."""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING

from ragbench.base import console

if TYPE_CHECKING:
    from ragbench.results.compare import GatheredArms

_LOG = logging.getLogger(__name__)

DESCRIPTION = "Compare finished runs, or TREC run files of other systems, using the benchmark's judgments."
EXAMPLES = """examples:
  ragbench compare @1                                    the arms of the newest run
  ragbench compare results/runs/A @1/rerank --baseline phase1 --measure "R@10"
  ragbench compare results/runs/A other-system.trec --format latex
  ragbench compare 3f2a...                               an MLflow run by its id
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Sources, what to compare, how to print it."""
    console.add_runs(parser, "*")
    parser.add_argument("--baseline", metavar="ARM", help="baseline (default: the first arm)")
    parser.add_argument(
        "--measure", metavar="NAME", help="measure to compare at document level (default: the first run's)"
    )
    parser.add_argument("--split", choices=("train", "test", "all"), help="query split (default: the first run's)")
    parser.add_argument(
        "--format",
        choices=("table", "markdown", "latex", "csv"),
        default="table",
        help="output format (default: table)",
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read, judge, print."""
    from ragbench.evidence import best_arm
    from ragbench.evidence.arms import Policy, verdict_table
    from ragbench.report import cells, screen, tables
    from ragbench.results import compare, measurements
    from ragbench.workbench.runs import named_runs, split_words

    sources, settings = named_runs(arguments.words)
    _, overrides = split_words(arguments.words)
    # The data are those of the runs; without a run, or where data= is given, those of the configuration.
    configured = measurements.names_data(overrides) or all(source.is_file() for source in sources)
    gathered = compare.gather(
        sources,
        split=arguments.split,
        measure=arguments.measure,
        benchmark=settings.benchmark() if configured else None,
        policy=Policy.of(settings.config),
    )
    gathered, exploratory = _recorded(gathered)
    frame = verdict_table(gathered.arms.against(arguments.baseline))
    for note in gathered.notes:
        _LOG.info(f"note: {note}")
    if arguments.json:
        console.print_json(frame)
    elif arguments.format == "csv":
        print(frame.to_csv(index=False), end="")
    elif arguments.format == "markdown":
        print(console.markdown(tables.compact(frame)))
    elif arguments.format == "latex":
        print(console.latex(tables.compact(frame)))
    elif gathered.run is not None and _is_as_measured(arguments, gathered):
        screen.show(gathered.run, more=False)
        tables.show_details(gathered.run, frame)
    else:
        base = arguments.baseline or next(iter(gathered.arms.selected or gathered.arms.arms))
        policy = gathered.arms.policy
        change = f"Change in {policy.measure} from {base} [{policy.statistics.confidence:.0%} CI]"
        title = f"{change}: {gathered.benchmark}, split {gathered.split}"
        console.print_table(tables.compact(frame), title)
        tables.print_reasons(frame)
        tables.print_page_table(cells.best_configuration(best_arm.table(gathered.arms), policy.measure))
        if exploratory:
            print(exploratory)
    return 0


def _is_as_measured(arguments: argparse.Namespace, gathered: GatheredArms) -> bool:
    """Whether all arms of one run are compared as the run compared them, whose screen is then the answer."""
    asked = (arguments.baseline, arguments.measure, arguments.split)
    return not any(asked) and set(gathered.arms.selected or gathered.arms.arms) == set(gathered.arms.arms)


def _recorded(gathered: GatheredArms) -> tuple[GatheredArms, str]:
    """Record that arms of several runs are compared: the arms as that comparison judges them, and its label.

    Arms of one run have the verdicts of that run: reading them again is not a comparison.
    """
    from dataclasses import replace

    from ragbench.base.fingerprint import digest
    from ragbench.results import comparisons

    if gathered.run is not None:
        return gathered, gathered.run.exploratory
    arms = gathered.arms
    queries = {qid for arm in arms.arms.values() for values in arm.levels.values() for qid in values}
    compared = [arms.policy.measure, sorted(digest(arm.levels) for arm in arms.arms.values())]
    number = comparisons.record(gathered.benchmark, queries, compared, "compare", list(arms.arms))
    policy = replace(arms.policy, exploratory=number > 1)
    return replace(gathered, arms=replace(arms, policy=policy)), comparisons.describe(number)
