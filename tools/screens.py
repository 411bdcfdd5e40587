"""The screens that README and docs/quickstart.md show, from real runs: `python -m tools.screens [key=value ...]`.

    make screens                            both pages, some minutes of a quiet machine
    python -m tools.screens README.md       one of them; words such as paths.cache=FOLDER go to `ragbench run`

Times of the first hour are excluded, because they depend on the machine.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.report_screenshot import README, command

ROOT = README.parent
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


def readme(page: str, words: Sequence[str]) -> str:
    """README with the screen of the run that it names."""
    with tempfile.TemporaryDirectory() as folder:
        screen = said([*command(), "tracking.enabled=false", *words], Path(folder))
    return with_block(page, page.index("```\nnDCG@10 on builtin"), screen)


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


PAGES: dict[Path, Callable[[str, Sequence[str]], str]] = {README: readme, FIRST_HOUR: first_hour}


def main() -> None:
    named = [ROOT / word for word in sys.argv[1:] if "=" not in word]
    for path in named or PAGES:
        page = path.read_text(encoding="utf-8")
        path.write_text(PAGES[path](page, [word for word in sys.argv[1:] if "=" in word]), encoding="utf-8")


if __name__ == "__main__":
    main()
