"""`ragbench run`."""

from __future__ import annotations

import argparse

from ragbench import console

DESCRIPTION = "Measure one configuration on a benchmark, or with -m every combination of a sweep, side by side."
EXAMPLES = """examples:
  ragbench run                                   the default pipeline on the built-in benchmark
  ragbench run +exp=phase3                       an experiment
  ragbench run +exp=phase3 p6=off dense.depth=50 the same with changes
  ragbench run -m +exp=baseline,phase1,all       arms that share work, with verdicts against the first
  ragbench run -m p6=on,off fuse.k=20,60         every combination
  ragbench run latency.enabled=false split=train quality only, on the training topics
  ragbench run latency.arrival_qps=[5,10,20]     also the response time when queries queue
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Overrides, `-m` and output options."""
    parser.add_argument("-m", "--multirun", action="store_true", help="run every combination of comma-separated values")
    parser.add_argument(
        "--explain-plan", action="store_true", help="say what would be computed and what reused, and stop"
    )
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compose, run, write files, log to MLflow, print the table."""
    from ragbench.workbench import Experiment

    made = Experiment.sweep if arguments.multirun else Experiment.single
    experiment = made(*arguments.overrides)
    if arguments.explain_plan:
        print(experiment.plan())
        return 0
    with console.progress(arguments.quiet or arguments.json) as progress:
        results = experiment.run(progress)
    verdicts = results.verdicts
    if arguments.json:
        console.print_json(
            {
                "folder": str(results.folder),
                "mlflow_run": results.tracking_run,
                "summary": results.summary(("split",)).to_dict(orient="records"),
                "verdicts": verdicts.to_dict(orient="records"),
                "latency": results.latency.to_dict(orient="records"),
                "open_loop": results.open_loop.to_dict(orient="records"),
                "peak_memory_mb": dict(results.peak_memory_mb),
            }
        )
        return 0
    from ragbench.report import html, tables

    tables.show(results)
    if len(verdicts):  # of every arm against the first
        tables.show_verdicts(results, verdicts)
    if len(results.arms) > 1:
        print(f"report in {results.folder / html.FILE}")
    print(results.whereabouts)
    return 0
