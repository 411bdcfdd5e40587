"""`ragbench track` (Maintain the installation): write finished runs to MLflow, and open MLflow."""

from __future__ import annotations

import argparse

from ragbench.base import console
from ragbench.base.types import TrackingError, redacted

DESCRIPTION = """Write finished runs and hyperparameter searches to MLflow.

Use it after tracking.enabled=false, or if the MLflow store could not be written or was lost."""
EXAMPLES = """examples:
  ragbench track --all                        everything in the results folder that is missing from the store
  ragbench track @1                           the newest run
  ragbench track --all tracking.uri=http://mlflow.example:5000
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which folders, and overrides that say where the store is."""
    parser.add_argument(
        "--all",
        action="store_true",
        help="write every finished run and hyperparameter search that is missing from the store",
    )
    parser.add_argument("words", nargs="*", metavar="run|key=value", help="runs, or folders of searches; settings")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Find what is asked for, log it, say what was logged."""
    from ragbench.config import composition
    from ragbench.extras.tracking import store, write
    from ragbench.workbench.runs import find, split_words

    named, overrides = split_words(arguments.words)
    if arguments.all == bool(named):
        raise TrackingError("specify what to write to MLflow: --all, or folders of runs and searches, but not both")
    settings = composition.compose(overrides)
    target = store.target_of(settings)
    folders = [find(name, settings) for name in named]
    store.check(target)
    if arguments.all:
        written = write.log_missing(target)
    else:
        written = [folder for folder in folders if write.log(target, folder)]
        if len(written) < len(folders):
            raise TrackingError(f"{len(folders) - len(written)} of {len(folders)} folders were not logged (see above)")
    if arguments.json:
        console.print_json({"store": redacted(target.uri), "logged": [str(folder) for folder in written]})
    else:
        print(f"{len(written)} logged to {redacted(target.uri)}")
    return 0
