"""`ragbench compare`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench import console

DESCRIPTION = "Compare finished runs, also run files of other systems, on the benchmark's judgments."
EXAMPLES = """examples:
  ragbench compare results/runs/20260101-120000-run-6-arms
  ragbench compare results/runs/A results/runs/B --baseline phase1 --measure "R@10"
  ragbench compare results/runs/A other-system.trec --format latex
  ragbench compare 3f2a...                               an MLflow run by its id
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Sources, what to compare, how to print it."""
    parser.add_argument("words", nargs="+", metavar="run|key=value", help="results folders, run files, overrides")
    parser.add_argument("--baseline", help="the arm to compare with (default: the first)")
    parser.add_argument("--measure", metavar="NAME", help="the measure of documents (default: that of the first run)")
    parser.add_argument("--split", choices=("train", "test", "all"), help="the topics (default: the first run's)")
    parser.add_argument("--format", choices=("table", "markdown", "latex", "csv"), default="table")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read, judge, print."""
    from ragbench import app, tracking
    from ragbench.comparison.policy import Policy
    from ragbench.comparison.table import table
    from ragbench.experiment import compare
    from ragbench.report import tables
    from ragbench.topics.load import load

    overrides = [word for word in arguments.words if "=" in word and not Path(word).exists()]
    settings = app.compose(overrides)
    named = [word for word in arguments.words if word not in overrides]
    target = tracking.target_of(settings)
    sources = [Path(word) if Path(word).exists() else Path(tracking.folder_of(target, word)) for word in named]
    # Data are those of the runs; without a run, or with data= in so many words, those of the configuration.
    told = any(word.startswith(("data=", "data.", "topics=", "topics.")) for word in overrides)
    given = told or all(source.is_file() for source in sources)
    gathered = compare.gather(
        sources,
        split=arguments.split,
        measure=arguments.measure,
        benchmark=load(settings.config) if given else None,
        policy=Policy.of(settings.config),
    )
    frame = table(gathered.arms.against(arguments.baseline))
    for note in gathered.notes:
        console.say(f"note: {note}")
    if arguments.json:
        console.print_json(frame.to_dict(orient="records"))
    elif arguments.format == "csv":
        print(frame.to_csv(index=False), end="")
    elif arguments.format == "markdown":
        print(console.markdown(tables.compact(frame)))
    elif arguments.format == "latex":
        print(console.latex(tables.compact(frame)))
    else:
        base = arguments.baseline or next(iter(gathered.arms.arms))
        title = f"Against {base}: {gathered.arms.policy.measure} on {gathered.benchmark}, split {gathered.split}"
        tables.print_verdicts(frame, title)
    return 0
