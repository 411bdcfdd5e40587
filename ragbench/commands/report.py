"""`ragbench report`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench import console

DESCRIPTION = "Write a finished run as one HTML file that opens offline: verdicts, figures, every query, methods text."
EXAMPLES = """examples:
  ragbench report                                     the newest run, as report.html in its folder
  ragbench report results/runs/A --out report-A.html  another run, another place
  ragbench report 3f2a...                             an MLflow run by its id
  ragbench report --picture pareto.svg                also quality against time as a picture
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and where to write."""
    parser.add_argument(
        "words", nargs="*", metavar="run|key=value", help="a results folder (default: the newest), overrides"
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="the file to write (default: report.html in the folder)"
    )
    parser.add_argument(
        "--picture", metavar="FILE", type=Path, help="also draw quality against time as SVG into this file"
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the run, write the page, say where it is."""
    from ragbench import app, tracking
    from ragbench.errors import ResultsError
    from ragbench.experiment import results, store
    from ragbench.files import write_text
    from ragbench.report import html

    overrides = [word for word in arguments.words if "=" in word and not Path(word).exists()]
    settings = app.compose(overrides)
    named = [word for word in arguments.words if word not in overrides]
    if len(named) > 1:
        raise ResultsError(
            f"a report is about one run, got {len(named)}: {', '.join(named)}; compare runs with compare"
        )
    if not named:
        folder = store.latest(settings.results, console.say)
    elif Path(named[0]).exists():
        folder = Path(named[0])
    else:
        folder = Path(tracking.folder_of(tracking.target_of(settings), named[0]))
        # A nested run is one arm; its report is that of the experiment it belongs to.
        folder = folder if (folder / store.RECORD).is_file() else folder.parent.parent
    if arguments.out is not None and arguments.out.is_dir():
        raise ResultsError(f"--out {arguments.out} is a folder: name a file such as {arguments.out / html.FILE}")
    if arguments.picture is not None:
        from ragbench.report import picture

        try:
            write_text(arguments.picture, picture.svg(results.load(folder)))
        except OSError as error:
            raise ResultsError(f"cannot write {arguments.picture} ({error.strerror}): name another file") from None
    path = html.write(folder, arguments.out)
    if arguments.json:
        said = {"run": str(folder), "report": str(path), "bytes": path.stat().st_size}
        console.print_json(said if arguments.picture is None else {**said, "picture": str(arguments.picture)})
        return 0
    print(f"report in {path}")
    if arguments.picture is not None:
        print(f"picture in {arguments.picture}")
    return 0
