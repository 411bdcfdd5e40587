"""`ragbench report` (Measure and compare): write a finished run as one HTML file that opens offline."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench.base import console
from ragbench.base.types import ResultsError, short_path

DESCRIPTION = "Write a finished run as one HTML file that opens offline: verdicts, figures, every query."
EXAMPLES = """examples:
  ragbench report                                     the newest run, as report.html in its folder
  ragbench report @2 --out report-A.html              the previous run, into another file
  ragbench report 3f2a...                             an MLflow run by its id
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and where to write."""
    console.add_runs(parser, "?")
    parser.add_argument("--out", metavar="FILE", type=Path, help="output file (default: report.html in the folder)")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the run, write the page, say where it is."""
    from ragbench.extras.report import html
    from ragbench.results import measurements, store
    from ragbench.workbench.runs import named_runs, split_words

    (folder,), settings = named_runs(arguments.words, limit=1)
    results = measurements.load(store.run_folder(folder))
    measurements.refuse_other_data(results, settings.config, split_words(arguments.words)[1])
    if arguments.out is not None and arguments.out.is_dir():
        raise ResultsError(f"--out {arguments.out} is a folder: name a file such as {arguments.out / store.REPORT}")
    path = html.write(results, arguments.out)
    if arguments.json:
        console.print_json({"run": str(results.folder), "report": str(path), "bytes": path.stat().st_size})
        return 0
    print(f"report in {short_path(path)}")
    return 0
