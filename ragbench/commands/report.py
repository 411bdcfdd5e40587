"""`ragbench report`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench.base import console, plugins
from ragbench.base.errors import ResultsError
from ragbench.base.files import write_text

DESCRIPTION = "Write a finished run as one HTML file that opens offline: verdicts, figures, every query, methods text."
EXAMPLES = """examples:
  ragbench report                                     the newest run, as report.html in its folder
  ragbench report @2 --out report-A.html              the previous run, into another file
  ragbench report 3f2a...                             an MLflow run by its id
  ragbench report --picture pareto.svg                also a plot of quality against latency
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and where to write."""
    console.add_runs(parser, "?")
    parser.add_argument("--out", metavar="FILE", type=Path, help="output file (default: report.html in the folder)")
    parser.add_argument(
        "--picture", metavar="FILE", type=Path, help="also write a plot of quality against latency to this SVG file"
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the run, write the page, say where it is."""
    from ragbench.report import html
    from ragbench.results import measured_data, measurements, store
    from ragbench.workbench.runs import named_runs, split_words

    (folder,), settings = named_runs(arguments.words, limit=1)
    # An arm has no report: write that of its experiment.
    folder = folder if (folder / store.RECORD).is_file() else folder.parent.parent
    measured_data.refuse_other_data(measurements.load(folder), settings.config, split_words(arguments.words)[1])
    if arguments.out is not None and arguments.out.is_dir():
        raise ResultsError(f"--out {arguments.out} is a folder: name a file such as {arguments.out / html.FILE}")
    if arguments.picture is not None:
        picture = plugins.required("picture", "--picture")
        try:
            write_text(arguments.picture, picture.svg(measurements.load(folder)))
        except OSError as error:
            raise ResultsError(f"cannot write {arguments.picture} ({error.strerror}): name another file") from None
    path = html.write(folder, arguments.out)
    if arguments.json:
        fields = {"run": str(folder), "report": str(path), "bytes": path.stat().st_size}
        console.print_json(fields if arguments.picture is None else {**fields, "picture": str(arguments.picture)})
        return 0
    print(f"report in {console.short_path(path)}")
    if arguments.picture is not None:
        print(f"picture in {arguments.picture}")
    return 0
