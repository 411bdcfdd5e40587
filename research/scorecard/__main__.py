"""The scorecard of the source documents: docs/research/scorecard.md with its pictures.

python -m research.scorecard                                       the page, from the tables that are committed
python -m research.scorecard FOLDER [--sites NAME,NAME] [key=value] measure first, on the sites of user questions there

A site is a folder with `vault`, `queries.jsonl` and `qrels/test.tsv`. What a finished run in `paths.results` has
measured is taken from it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ragbench.base import console
from ragbench.base.types import BAD_INPUT, RagbenchError, short_path
from research.scorecard import measure, page


def main(given: list[str] | None = None) -> int:
    """Measure where a folder is named, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="the sites of user questions")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as paths.results=DIR")
    parser.add_argument("--sites", metavar="NAME,NAME", help="only these")
    arguments = parser.parse_intermixed_args(given)
    try:
        if arguments.folder:
            with console.progress(False):
                rows = measure.measure(arguments.folder, (arguments.sites or "").split(","), arguments.overrides)
            rows.to_csv(measure.MEASURED, index=False, float_format="%.5f")
        for path in page.write():
            print(short_path(path))
    except RagbenchError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
