"""The picture of the studio: `python -m tools.studio_screenshots WORK OUT`, or `make screenshots`.

Runs a configuration over a few notes in WORK, unless there is a run, so that something is left to judge; opens the
page and writes it to OUT.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browser import chromium, save

SIZE = (1180, 760)
NOTES = Path(__file__).parents[1] / "tests" / "data" / "phases"
QUESTIONS = """text,relevant
how do programs prove their identity,authentication.md
copies of the data at night,backup.md
why is a request slow,slow-requests.md
"""


def main(work: Path, out: Path) -> None:
    """Write the picture."""
    words = [f"paths.{name}={work / name}" for name in ("results", "index", "cache")]
    ragbench = [sys.executable, "-m", "ragbench"]
    notes = ["data=vault", f"data.corpus={NOTES}", f"data.queries={work / 'questions.csv'}"]
    if not list((work / "results" / "runs").glob("*/experiment.json")):
        work.mkdir(parents=True, exist_ok=True)
        (work / "questions.csv").write_text(QUESTIONS, encoding="utf-8")
        quick = ["split=all", "tracking.enabled=false", "latency.enabled=false"]
        subprocess.run([*ragbench, "run", *notes, *quick, *words], check=True)
    out.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        [*ragbench, "studio", "--port", "0", *notes, *words], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = re.search(r"http://\S+token=\S+", process.stdout.readline())
            assert address is not None
            # Without a head, Chromium takes 139 pixels of the window away.
            with tempfile.TemporaryDirectory() as profile, chromium(Path(profile), SIZE[0], SIZE[1] + 139) as chrome:
                chrome.get(address[0])
                _judge(chrome)
                save(chrome.get_screenshot_as_png(), out / "studio-judging.png", labels(chrome.page_source))
        finally:
            process.send_signal(signal.SIGTERM)


def labels(page: str) -> list[str]:
    """What the buttons, the menu and the fields of a page of the studio are called, each once."""
    found = re.findall(
        r"<button[^>]*>(.*?)</button>|<a href=\"/\w*\">(.*?)</a>|<label class=\"grow\">(.*?)<", page, flags=re.S
    )
    return sorted({re.sub(r"<[^>]*>", "", "".join(each)).strip() for each in found})


def _judge(chrome) -> None:
    """Make a pool of the run unless there is one, and grade its pairs up to one with a long text."""
    from selenium.webdriver.common.by import By

    if not chrome.find_elements(By.CSS_SELECTOR, "form[action='/judging/begin']"):
        chrome.find_element(By.CSS_SELECTOR, "form[action='/judging/pool'] button").click()
    chrome.find_element(By.CSS_SELECTOR, "[name=judge]").send_keys("Anna")
    chrome.find_element(By.CSS_SELECTOR, "form[action='/judging/begin'] button").click()
    for grade in "0213" * 4:
        if len(chrome.find_element(By.CSS_SELECTOR, "article .text").text) > 200 and "0 of" not in chrome.page_source:
            break
        chrome.find_element(By.CSS_SELECTOR, f"button[value='{grade}']").click()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
