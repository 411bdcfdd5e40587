"""Whether a measured search is in one SQLite file, and answers from it, for less than half of a bundle made anew.

    python tests/bench/export_again.py --notes 5000 --write docs/research/serving-benchmarks.md

Over generated notes: (1) the recommended search is built from the notes, written as a bundle, and answers once; (2) the
same run is exported to SQLite, its topics are asked there, and the file answers once. Each is a process of its own;
seconds are of the processor, all threads added up, so that other work matters little. Exit code 1 over half.
"""

from __future__ import annotations

import argparse
import datetime
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import pages

MOST = 0.5


def build(place: Path, count: int) -> None:
    """Make a bundle of generated notes, and ask it."""
    from production import make_bundle

    make_bundle(place, count, [])
    answer(place / "bundle")


def export(place: Path, count: int) -> None:
    """Export the run to SQLite, and ask the file."""
    from ragbench.export.write import write

    answer(Path(write(place / "run", place / "notes.sqlite", format="sqlite", force=True).out))


def answer(place: Path) -> None:
    """One answer."""
    import ragbench

    with ragbench.load(place) as found:
        assert found.search("a question", 5)


STEPS = {"a bundle from the notes": build, "from its run to SQLite": export}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=5000)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        STEPS[given.step](given.place, given.notes)
        return 0
    rows = [f"| {given.notes:,} notes, until the first answer | CPU seconds |", "| --- | ---: |"]
    took = []
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            before = _seconds()
            again = [sys.executable, __file__, "--step", step, "--place", folder, "--notes", str(given.notes)]
            subprocess.run(again, check=True)
            took.append(_seconds() - before)
            rows.append(f"| {step} | {took[-1]:.0f} |")
    rows += [
        "",
        f"Share {took[1] / took[0]:.2f}; measured on {datetime.date.today()} by `tests/bench/export_again.py`.",
    ]
    print(*rows, sep="\n")
    if given.write is not None:
        pages.write_between(given.write, "export again", "\n".join(rows))
    return int(took[1] / took[0] >= MOST)


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
