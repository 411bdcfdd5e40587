"""`ragbench run`."""

from __future__ import annotations

import argparse

from ragbench import console

DESCRIPTION = "Measure one configuration on a benchmark, or with -m every combination of a sweep, side by side."
EXAMPLES = """examples:
  ragbench run                                   the default pipeline on the built-in benchmark
  ragbench run +exp=phase3                       an experiment
  ragbench run +exp=phase3 p6=off dense.depth=50 the same with changes
  ragbench run -m +exp=baseline,phase1,all       arms that share work, with a comparison
  ragbench run -m p6=on,off fuse.k=20,60         every combination
  ragbench run latency.enabled=false split=train quality only, on the training topics
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Overrides, `-m` and output options."""
    parser.add_argument("-m", "--multirun", action="store_true", help="run every combination of comma-separated values")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compose, run, write files, log to MLflow, print the table."""
    from ragbench import app, tracking

    settings = app.compose(arguments.overrides, sweep=arguments.multirun)
    tracked = bool(settings[0].config["tracking"]["enabled"])
    if tracked:
        tracking.check_store(tracking.store_uri(settings[0]))
    from ragbench.benchmark.load import load
    from ragbench.experiment.run import run

    benchmark = load(settings[0].config["data"])
    for warning in benchmark.warnings:
        console.say(f"warning: {warning}")
    with console.progress(arguments.quiet or arguments.json) as progress:
        results = run(settings, benchmark, progress=progress, say=console.say)
    if len(settings) > 1:
        from ragbench.report import html

        html.write(results.folder)
    tracking_run = tracking.log(results, settings, benchmark, console.say) if tracked else None
    if arguments.json:
        console.print_json(
            {
                "folder": str(results.folder),
                "mlflow_run": tracking_run,
                "summary": results.summary(("split",)).to_dict(orient="records"),
                "latency": results.latency.to_dict(orient="records"),
            }
        )
        return 0
    from ragbench.report import tables

    tables.show(results)
    print(f"results in {results.folder}" + (f", MLflow run {tracking_run}" if tracking_run else ""))
    return 0
