"""The screens of docs/quickstart.md and README's picture, from real runs: `python -m tools.screens [key=value ...]`.

    make screens        some minutes of a quiet machine; words such as paths.cache=FOLDER go to `ragbench run`

The picture is the first run of a checkout, on the built-in benchmark. Times of the first hour are excluded, because
they depend on the machine.
"""

from __future__ import annotations

import html
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "run.svg"
FIRST_HOUR = ROOT / "docs" / "quickstart.md"
NOTES = ROOT / "tests" / "data" / "phases"


def said(words: Sequence[str], folder: Path) -> str:
    """What `ragbench` prints in a folder, whose looks at test topics are its own; notes come first, no progress."""
    surroundings = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "ragbench", *words],
        cwd=folder,
        env=surroundings,
        capture_output=True,
        text=True,
        check=True,
    )
    notes = [line for line in done.stderr.splitlines() if line.startswith(("note: ", "evidence: "))]
    printed = [line.rstrip() for line in done.stdout.splitlines() if not line.startswith("results in ")]
    return "\n".join([*notes, *printed])


def picture(screen: str) -> str:
    """A screen of `ragbench run` as a picture (SVG), below the command."""
    lines = ["$ ragbench run", *screen.splitlines()]
    tones = {"$": "#7ee787", "verdict": "#ffd866", "next:": "#8b949e"}
    rows = "\n".join(
        f'<text x="20" y="{40 + 22 * number}" fill="{tones.get(line.split()[0], "#e6edf3")}" xml:space="preserve">'
        f"{html.escape(line, quote=False)}</text>"
        for number, line in enumerate(lines)
    )
    height = 40 + 22 * len(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" width="720" height="{height}" role="img" '
        'aria-label="The screen of ragbench run" font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="14">\n<rect width="720" height="{height}" rx="8" fill="#0d1117"/>\n{rows}\n</svg>\n'
    )


def first_hour(page: str, words: Sequence[str]) -> str:
    """The page with what each of its commands but the last prints, in order."""
    place = page.index("## Output of each command")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(NOTES, Path(folder) / "notes")
        for line in re.findall(r"^\$ ragbench (.*)$", page, flags=re.M)[:-1]:
            more = words if line == "run" else ()
            screen = without_times(said([*shlex.split(line), *more], Path(folder)))
            place = page.index("```\n", place)
            page = with_block(page, place, screen)
            place = page.index("\n```\n", place + 4) + 5
    return page


def without_times(screen: str) -> str:
    """A screen without what depends on the machine."""
    screen = re.sub(r" +\d+ ms\b", lambda found: f"{'.. ms':>{len(found[0])}}", screen)
    screen = re.sub(r"(about|baseline|recommended|timing) [\d.]+ (s|min)\b", r"\1 .. s", screen)
    return re.sub(r"^passes latency .*\n", "", screen, flags=re.M)


def with_block(page: str, start: int, text: str) -> str:
    """The page with another text in the fence that begins at `start`."""
    end = page.index("\n```", start + 4)
    return f"{page[:start]}```\n{text}{page[end:]}"


def main() -> None:
    page = FIRST_HOUR.read_text(encoding="utf-8")
    FIRST_HOUR.write_text(first_hour(page, sys.argv[1:]), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        screen = said(["run", *sys.argv[1:]], Path(folder))
    PICTURE.write_text(picture(re.sub(r"^report in .*\n", "", screen, flags=re.M)), encoding="utf-8")


if __name__ == "__main__":
    main()
