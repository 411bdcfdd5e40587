"""The picture of the report for README: `python -m tools.report_screenshot WORK OUT`, or `make screenshot`.

Runs the command that README shows in WORK, unless a run is there already, and takes the first screen of its report.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browser import chromium, save

SIZE = (1340, 1000)
README = Path(__file__).parents[1] / "README.md"


def command() -> list[str]:
    """The words of the run whose screen README shows."""
    found = re.search(r"^`ragbench (run -m [^`]+)`", README.read_text(encoding="utf-8"), flags=re.M)
    assert found is not None
    return shlex.split(found[1])


def main(work: Path, out: Path) -> None:
    """Write the picture."""
    ragbench = [sys.executable, "-m", "ragbench"]
    if not list(work.glob("runs/*/experiment.json")):
        subprocess.run([*ragbench, *command(), f"paths.results={work}", "tracking.enabled=false"], check=True)
    page = work / "report.html"
    subprocess.run([*ragbench, "report", "--out", str(page), f"paths.results={work}"], check=True)
    # Without a head, Chromium takes 139 pixels of the window away.
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile), SIZE[0], SIZE[1] + 139) as chrome:
        chrome.get(page.as_uri())
        chrome.execute_script("document.documentElement.style.overflow = 'hidden'")  # no bar at the side
        save(chrome.get_screenshot_as_png(), out)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
