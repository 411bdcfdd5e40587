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
    parser.add_argument("--measure", default="nDCG@10", help="the measure to compare (default nDCG@10)")
    parser.add_argument("--format", choices=("table", "markdown", "latex", "csv"), default="table")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read, measure, compare, print."""
    from ragbench import app, tracking
    from ragbench.experiment import compare
    from ragbench.topics.load import load

    overrides = [word for word in arguments.words if "=" in word and not Path(word).exists()]
    settings = app.compose(overrides)
    sources = [
        word if Path(word).exists() else tracking.folder_of(tracking.target_of(settings), word)
        for word in arguments.words
        if word not in overrides
    ]
    benchmark = load(settings.config)
    frames = compare.values(sources, benchmark, settings.split, settings.measures)
    table = compare.compare(frames, arguments.baseline, arguments.measure, seed=int(settings.config["seed"]))
    if arguments.json:
        console.print_json(table.to_dict(orient="records"))
    elif arguments.format == "csv":
        print(table.to_csv(index=False), end="")
    elif arguments.format == "markdown":
        print(console.markdown(table))
    elif arguments.format == "latex":
        print(console.latex(table))
    else:
        title = f"{arguments.measure} on split {settings.split}"
        note = f"; {benchmark.provenance}" if benchmark.provenance else ""
        console.print_table(table, title + note, {"difference": "+.4f"})
    return 0
