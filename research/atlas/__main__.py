"""Make the tables and pages of the atlas: fetch collections, measure the changes on them, write the documentation.

python -m research.atlas fetch --out collections
python -m research.atlas measure collections/collections.yaml --groups switches recommended
python -m research.atlas page --out docs
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ragbench.base import console
from ragbench.base.types import BAD_INPUT, ConfigError, RagbenchError, short_path
from ragbench.extras.atlas.tables import Atlas
from research.atlas import fetch, ingest, measure, page


def main(given: list[str] | None = None) -> int:
    """Do what is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("fetch", "measure", "page"))
    parser.add_argument("words", nargs="*", metavar="WORD key=value", help="names, or lists of collections")
    parser.add_argument("--groups", nargs="+", metavar="GROUP", default=(), help="measure only these groups of changes")
    parser.add_argument("--out", type=Path, metavar="DIR", help="output folder")
    arguments = parser.parse_intermixed_args(given)
    doing = {"fetch": _fetch, "measure": _measure, "page": _page}
    try:
        doing[arguments.action](arguments)
    except RagbenchError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    return 0


def _fetch(arguments: argparse.Namespace) -> None:
    for name, about in fetch.fetch(arguments.out or Path("collections"), arguments.words).items():
        print(f"{name}: {about['source']}, {about['licence']}")


def _measure(arguments: argparse.Namespace) -> None:
    paths = [Path(word) for word in arguments.words if "=" not in word]
    words = [word for word in arguments.words if "=" in word]
    if not paths:
        raise ConfigError("measure takes a file that lists collections: fetch writes one")
    listed = [each for path in paths for each in measure.collections(path)]
    with console.progress(False):
        measured = measure.measure(listed, words, arguments.groups)
    out = arguments.out or Path("atlas")
    ingest.write(measured, out)
    print(f"{len(measured.effects)} effects on {len(measured.collections)} collections in {short_path(out)}")


def _page(arguments: argparse.Namespace) -> None:
    for path in page.write(Atlas.load(), arguments.out or Path("docs")):
        print(short_path(path))


if __name__ == "__main__":
    sys.exit(main())
