"""`ragbench diagnose`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench import console

DESCRIPTION = "Say at which stage relevant sections were lost, for all queries of a finished run or for one of them."
EXAMPLES = """examples:
  ragbench diagnose                                     the newest run
  ragbench diagnose --run results/runs/A --arms baseline,all
  ragbench diagnose --query gate-07 --arms baseline,all
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, arms and query."""
    parser.add_argument("--run", metavar="FOLDER", help="a results folder (default: the newest)")
    parser.add_argument("--arms", help="comma-separated arms (default: all of the run)")
    parser.add_argument("--query", metavar="QID", help="one query, section by section")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the diagnosis of the arms and print it."""
    import pandas as pd

    from ragbench import app
    from ragbench.errors import ResultsError
    from ragbench.evaluation.diagnosis import losses, sentences
    from ragbench.experiment import results, store

    settings = app.compose(arguments.overrides)
    folder = Path(arguments.run) if arguments.run else store.latest(settings.results, console.say)
    loaded = results.load(folder)
    known = loaded.arms
    arms = arguments.arms.split(",") if arguments.arms else known
    for arm in arms:
        if arm not in known:
            raise ResultsError(f"{folder} has no arm '{arm}'; it has {', '.join(known)}")
    files = [loaded.arm_path(arm) / results.DIAGNOSIS for arm in arms]
    if not all(path.is_file() for path in files):
        raise ResultsError(f"{folder} has no diagnosis: its benchmark has no section-level judgments")
    frame = pd.concat([pd.read_parquet(path) for path in files], ignore_index=True)
    if arguments.query:
        frame = frame[frame["qid"] == arguments.query]
        if frame.empty:
            raise ResultsError(f"query '{arguments.query}' has no relevant section in {folder}")
    if arguments.json:
        console.print_json(frame.to_dict(orient="records"))
    elif arguments.query:
        console.print_table(frame.drop(columns="qid"), f"Query {arguments.query}")
    else:
        console.print_table(losses(frame), "Relevant sections by what became of them", {"share": ".1%"})
        print("\n".join(sentences(frame)))
    return 0
