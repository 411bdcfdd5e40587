"""Pictures of the studio: `python -m tools.studio_screenshots WORK OUT`, or `make screenshots`.

Runs a small ablation on the built-in benchmark in WORK unless there is one, and a run over a few notes with something
left to judge; opens the pages and writes them to OUT.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from tests.browser import chromium, save

SIZE = (1180, 760)
ABLATION = [
    *("+exp=baseline", "design=add_one", "factors=[p4,p10]", "split=test"),
    *("tracking.enabled=false", "latency.enabled=false"),
]
NOTES = Path(__file__).parents[1] / "tests" / "data" / "phases"
QUESTIONS = """text,relevant
how do programs prove their identity,authentication.md
copies of the data at night,backup.md
why is a request slow,slow-requests.md
"""


def main(work: Path, out: Path) -> None:
    """Write every picture."""
    words = [f"paths.{name}={work / name}" for name in ("results", "index", "cache")]
    ragbench = [sys.executable, "-m", "ragbench"]
    if not list((work / "results" / "runs").glob("*/experiment.json")):
        subprocess.run([*ragbench, "ablate", *ABLATION, *words], check=True)
        (work / "questions.csv").write_text(QUESTIONS, encoding="utf-8")
        notes = ["data=vault", f"data.corpus={NOTES}", f"data.queries={work / 'questions.csv'}", "name=notes"]
        subprocess.run([*ragbench, "run", *notes, "split=all", *ABLATION[-2:], *words], check=True)
    out.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen([*ragbench, "studio", "--port", "0", *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"(http://[^/]+)/\?token=(\S+)", process.stdout.readline())
            assert found is not None
            # Without a head, Chromium takes 139 pixels of the window away.
            with tempfile.TemporaryDirectory() as profile, chromium(Path(profile), SIZE[0], SIZE[1] + 139) as chrome:
                chrome.get(f"{found[1]}/?token={found[2]}")
                for name, path in _pages(chrome):
                    chrome.get(f"{found[1]}{path}")
                    save(chrome.get_screenshot_as_png(), out / f"{name}.png")
        finally:
            process.send_signal(signal.SIGTERM)


def _pages(chrome) -> Iterator[tuple[str, str]]:  # type: ignore[no-untyped-def] # of selenium, which tests have
    from selenium.webdriver.common.by import By

    arms = [str(box.get_attribute("value")) for box in chrome.find_elements(By.CSS_SELECTOR, "#board [name=arm]")]
    base, other = (next(arm for arm in arms if arm.endswith(f"/{name}")) for name in ("none", "p10"))
    yield "studio-runs", f"/?{urlencode({'base': base, 'sort': 'documents'})}"
    yield "studio-queries", f"/queries?{urlencode({'left': base, 'right': other})}"
    yield "studio-search", "/search?" + urlencode({"q": "how do I rotate an api key", "right": "+exp=lexical_only"})
    run = next(arm for arm in arms if arm.endswith("/notes")).partition("/")[0]
    _begin(chrome, run)
    yield "studio-judging", f"/judging/pair?{urlencode({'pool': run, 'judge': 'Anna'})}"
    form = {"command": "ablate", "exp": "baseline", "words": "design=add_one factors=[p1,p6]"}
    yield "studio-experiments", f"/experiments?{urlencode(form)}"


def _begin(chrome, run: str) -> None:  # type: ignore[no-untyped-def]
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.select import Select

    start = chrome.current_url.partition("/search")[0]
    chrome.get(f"{start}/judging")
    if not chrome.find_elements(By.CSS_SELECTOR, f"section[aria-label='Pool {run}']"):
        Select(chrome.find_element(By.CSS_SELECTOR, "[name=run]")).select_by_visible_text(run)
        chrome.find_element(By.CSS_SELECTOR, "form[action='/judging/pool'] button").click()
    chrome.find_element(By.CSS_SELECTOR, "[name=judge]").send_keys("Anna")
    chrome.find_element(By.CSS_SELECTOR, "form[action='/judging/begin'] button").click()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
