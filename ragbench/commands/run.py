"""`ragbench run` (Measure and compare): measure one or more configurations on a benchmark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ragbench.base import console
from ragbench.base.progress import hidden
from ragbench.base.types import ConfigError, short_path

if TYPE_CHECKING:
    from ragbench.workbench import Experiment, Results

DESCRIPTION = """Measure one configuration on a benchmark, or with -m every combination of a sweep, side by side.

Without a preset or an option it compares the baseline with the recommended search and reports whether the gain is
significant; inside a project (`ragbench init`) it measures the arms that ragbench.yaml lists.

If all documents take more than about four minutes to embed, it first prints a preliminary verdict on a part of them
(data.sample); Ctrl-C stops before the whole.

By default it uses the test queries. With -m it uses the training queries, or all queries if there are fewer than 100.
Only the first comparison on a set of queries can end in adopt. Later comparisons on them are exploratory: use --confirm
to test the arm that you choose on unused queries."""
EXAMPLES = """examples:
  ragbench run                                   is the recommended search better than the baseline?
  ragbench run data=vault data.corpus=notes data.queries=queries.csv   and on your notes?
  ragbench run exp=phase3                       a preset
  ragbench run exp=phase3 p6=off dense.depth=50  a preset with changes
  ragbench run -m exp=baseline,phase1,all       several arms, compared with the first one, the baseline
  ragbench run -m p6=on,off fuse.k=20,60         every combination
  ragbench run -m exp=baseline,phase1 split=test   on the test queries
  ragbench run --arm off="" --arm deep="rerank=on rerank.depth=50"     two arms; settings outside --arm apply to both
  ragbench run latency.enabled=false split=train  baseline and recommended: quality only, on the training queries
  ragbench run --remeasure-latency @1            re-measure the latency of the newest run, on a quieter machine
  ragbench run --confirm @1/recommended          one arm against the baseline, on unused queries
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Overrides, `-m` and output options."""
    parser.add_argument("-m", "--multirun", action="store_true", help="run every combination of comma-separated values")
    parser.add_argument("--remeasure-latency", metavar="RUN", help="re-measure the latency of a finished run")
    parser.add_argument(
        "--confirm",
        metavar="RUN/ARM",
        help="compare this arm with its run's baseline, on queries that no earlier comparison used",
    )
    console.add_experiment(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compose, run, write files, log to MLflow, print the table."""
    from ragbench.config import composition
    from ragbench.config.overrides import named_arms
    from ragbench.results.measurements import find_arm, names_data
    from ragbench.workbench import Experiment
    from ragbench.workbench.experiment import names_split
    from ragbench.workbench.runs import named_runs

    if (arguments.remeasure_latency or arguments.confirm) and (arguments.arm or arguments.multirun):
        raise ConfigError("--remeasure-latency and --confirm take the arms of a run: remove --arm and -m")
    if arguments.remeasure_latency and arguments.confirm:
        raise ConfigError("--remeasure-latency and --confirm do not go together: choose one")
    if arguments.remeasure_latency:
        (timed,), _ = named_runs([arguments.remeasure_latency, *arguments.overrides], limit=1)
        experiment = Experiment.of_run(timed)
    elif arguments.confirm:
        data = [override for override in arguments.overrides if names_data([override])]
        (folder,), _ = named_runs(
            [arguments.confirm, *(override for override in arguments.overrides if override not in data)], limit=1
        )
        finished, arm = find_arm(folder)
        experiment = Experiment.confirm(finished.folder, arm, *data)
    elif arguments.arm and arguments.multirun:
        raise ConfigError("--arm and -m do not go together: name every arm, or sweep values")
    elif arguments.arm:
        settings = composition.arms(named_arms(arguments.arm), arguments.overrides)
        experiment = Experiment(tuple(settings), explores=len(settings) > 1 and not names_split(settings))
    elif arguments.multirun and arguments.overrides:
        experiment = Experiment.sweep(*arguments.overrides)
    else:
        standard = composition.standard_arms(arguments.overrides)
        experiment = Experiment(tuple(standard or [composition.compose(arguments.overrides)]))
    measure = partial(experiment.remeasure_latency, timed) if arguments.remeasure_latency else experiment.measure
    return carry_out(arguments, experiment, measure, dashboard=arguments.multirun or bool(arguments.arm))


def carry_out(
    arguments: argparse.Namespace, experiment: Experiment, measure: Callable[..., Results], dashboard: bool
) -> int:
    """Measure and print the results."""
    results = _shown(arguments, experiment, measure)
    if arguments.json:
        console.print_json(results.as_json())
    else:
        _print_places(results, dashboard)
    return 0


def _shown(arguments: argparse.Namespace, experiment: Experiment, measure: Callable[..., Results]) -> Results:
    """Measure, print one screen or every table as soon as there are verdicts, and write the report and MLflow."""
    from ragbench.report import screen, tables

    def show(results: Results) -> None:
        with hidden():
            if results.record["command"] == "ablate":
                print(results.design)
            if not arguments.wide:
                screen.show(results)
            else:
                tables.show(results)
            sys.stdout.flush()  # a pipe shows the results now, too

    with console.progress(arguments.quiet or arguments.json):
        return experiment.keep(measure(show=None if arguments.json else show))


def _print_places(results: Results, dashboard: bool) -> None:
    """Print where all is and what comes next."""
    from ragbench.results import store

    report = results.folder / store.REPORT
    if report.is_file():
        print(f"report in {short_path(report)}")
    console.print_text(results.whereabouts)
    for line in results.next_reason.splitlines():
        console.print_text(line)
    console.next_command(results.next_command)
    if dashboard and results.tracking_run:
        console.next_command(results.dashboard)
