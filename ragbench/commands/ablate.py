"""`ragbench ablate`."""

from __future__ import annotations

import argparse

from ragbench import console

DESCRIPTION = (
    "Run the arms of a design and say of every proposal whether to adopt it, with effect, interval and latency."
)
EXAMPLES = """examples:
  ragbench ablate +exp=all                                     leave out each proposal in turn
  ragbench ablate +exp=baseline design=add_one                 add each proposal to the baseline
  ragbench ablate +exp=all design=shapley factors=[p1,p2,p6]   attribute the gain
  ragbench ablate +exp=all design=fractional --explain-plan    what would be computed, and what is shared
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Overrides and output options."""
    parser.add_argument("--explain-plan", action="store_true", help="print the tree of shared work and stop")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Plan, run, judge, write, log, print."""
    from ragbench import app, executor, tracking
    from ragbench.experiment import ablate

    (base,) = app.compose(arguments.overrides)
    ablation = ablate.plan(base, lambda overrides: app.compose(overrides)[0])
    tracked = bool(base.config["tracking"]["enabled"]) and not arguments.explain_plan
    if tracked:
        tracking.check_store(tracking.store_uri(base))
    from ragbench.benchmark.load import load
    from ragbench.experiment.run import run
    from ragbench.workshop import Workshop

    benchmark = load(base.config["data"])
    with console.progress(arguments.quiet or arguments.json) as progress:
        if arguments.explain_plan:
            arms = Workshop.of(base, benchmark, progress, console.say).arms(ablation.settings)
            tree = executor.plan(arms)
            print(executor.explain(tree, len(benchmark.select(base.split))))
            return 0
        results = run(ablation.settings, benchmark, command="ablate", progress=progress, say=console.say)
    frame = ablate.verdicts(ablation, results)
    from ragbench.experiment.results import write_text

    write_text(results.folder / "verdicts.csv", frame.to_csv(index=False))
    write_text(results.folder / "design.txt", f"{ablation.design.describe()}\n")
    from ragbench.report import html

    report = html.write(results.folder)
    tracking_run = tracking.log(results, ablation.settings, benchmark, console.say) if tracked else None
    if arguments.json:
        console.print_json(
            {"folder": str(results.folder), "mlflow_run": tracking_run, "verdicts": frame.to_dict(orient="records")}
        )
        return 0
    from ragbench.report import tables

    print(ablation.design.describe())
    tables.show(results)
    tables.show_verdicts(frame)
    print(f"report in {report}")
    print(f"results in {results.folder}" + (f", MLflow run {tracking_run}" if tracking_run else ""))
    return 0
