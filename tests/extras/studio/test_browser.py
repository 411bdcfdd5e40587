"""The studio in a real browser: search in two configurations, judge by keys, and pages that fit and are accessible."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from tests.browser import BROWSER, DRIVER, MISSING, chromium

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (BROWSER and DRIVER), reason=MISSING)]
WIDE = """
if (document.documentElement.scrollWidth <= window.innerWidth) return [];
return [...document.querySelectorAll("main *")]
  .filter((element) => !element.closest(".scroll") && element.getBoundingClientRect().right > window.innerWidth)
  .map((element) => element.outerHTML.slice(0, 120)).slice(0, 3);
"""
"""What reaches beyond the window, where the page is wider than that."""
LOOKS = [(1400, "light"), (1400, "dark"), (400, "light"), (400, "dark")]


@dataclass
class Visit:
    """A browser in a studio over a results folder."""

    chrome: Chrome
    results: Path
    address: str
    token: str

    def open(self, path: str, width: int = 1400, scheme: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        joint = "&" if "?" in path else "?"
        self.chrome.get(f"{self.address}{path}{joint}token={self.token}")

    def all(self, selector: str) -> list[WebElement]:
        from selenium.webdriver.common.by import By

        return self.chrome.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        from selenium.webdriver.common.by import By

        return self.chrome.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return str(
            self.chrome.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)
        )

    def press(self, key: str) -> None:
        """Press a key that leads to another page, and wait for that."""
        from selenium.webdriver.common.action_chains import ActionChains

        self.leave(lambda: ActionChains(self.chrome).send_keys(key).perform())

    def click(self, selector: str) -> None:
        self.leave(self.one(selector).click)

    def leave(self, act: Callable[[], Any]) -> None:
        """Do what leads to another page, and wait until that is there."""
        self.chrome.execute_script("window.before = true")
        act()
        self.until(
            lambda: self.chrome.execute_script("return !window.before && document.readyState === 'complete'"),
            "a new page",
        )

    def until(self, true: Callable[[], Any], what: str, seconds: float = 60) -> None:
        from selenium.common.exceptions import WebDriverException

        end = time.monotonic() + seconds
        while True:
            try:
                if true():
                    return
            except WebDriverException:
                pass  # the page is just being exchanged
            assert time.monotonic() < end, f"waited for {what}"
            time.sleep(0.05)

    def complaints(self) -> list[str]:
        logged = [entry for entry in self.chrome.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]
        return [entry["message"] for entry in logged]


@pytest.fixture(scope="module")
def visit(project: Path, overrides: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    results = tmp_path_factory.mktemp("browser") / "results"
    shutil.copytree(project, results)
    command = [sys.executable, "-m", "ragbench", "studio", "--port", "0", *overrides, f"paths.results={results}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address, token = re.search(r"(http://[^/]+)/\?token=(\S+)", process.stdout.readline()).groups()
        try:
            with chromium(tmp_path_factory.mktemp("profile"), 1400, 900) as driver:
                yield Visit(driver, results, address, token)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


@pytest.fixture(autouse=True)
def empty_browser_log(visit: Visit) -> None:
    """What the pages of other tests complained of is no longer in the browser's log."""
    visit.complaints()


@pytest.fixture(autouse=True)
def no_hostile_script(visit: Visit) -> Iterator[None]:
    yield
    assert visit.chrome.title != "broken"


def test_search_shows_two_sides(visit: Visit) -> None:
    visit.open("/search")
    visit.one("[name=q]").send_keys("lamps </script> document title broken")
    visit.one("[name=right]").send_keys("+exp=lexical_only")
    visit.leave(visit.one("[name=q]").submit)
    assert len(visit.all(".sides > section")) == 2
    assert visit.all("main script, main img, main b[onmouseover]") == []
    visit.one("summary").click()
    assert visit.complaints() == []


def test_pairs_are_judged_by_keys_and_taken_back(visit: Visit) -> None:
    visit.open("/judging")
    options = [option.text for option in visit.all("[name=run] option")]
    run = next(name for name in options if "2-arms" in name)
    visit.one(f"[name=run] option[value='{run}'], [name=run] option:nth-child({options.index(run) + 1})").click()
    visit.click("form[action='/judging/pool'] button")
    visit.one("[name=judge]").send_keys("Anna")
    visit.click("form[action='/judging/begin'] button")
    for number in range(20):
        visit.press("0123"[number % 4])
    assert visit.text("#progress").strip().startswith("20 of")
    visit.press("u")
    assert visit.text("#progress").strip().startswith("19 of")
    assert "min left" in visit.text("#progress")
    assert visit.all(".pair script, .pair img") == []
    assert visit.complaints() == []


def judged_pair(visit: Visit) -> str:
    """The address of a pair to judge, or of a pool in which all are judged."""
    pool = next(path.stem for path in (visit.results / "studio" / "pools").glob("*.csv"))
    judge = next(path.stem for path in (visit.results / "studio" / "judges" / pool).glob("*.csv"))
    return f"/judging/pair?{urlencode({'pool': pool, 'judge': judge})}"


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_pages_fit_and_are_accessible(visit: Visit, width: int, scheme: str) -> None:
    axe = _axe()
    for path in ("/judging", judged_pair(visit), "/search?q=lamps&right=%2Bexp%3Dlexical_only", "/nowhere"):
        visit.open(path, width, scheme)
        if path.startswith("/search"):
            visit.leave(visit.one("[name=q]").submit)
            assert len(visit.all(".sides > section")) == 2
        assert visit.chrome.execute_script(WIDE) == [], f"{path} does not fit into {width} pixels"
        loaded = visit.chrome.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
        assert "exceptionDetails" not in loaded
        violations = visit.chrome.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then((result) => done(result.violations))"
        )
        grave = [
            (
                violation["id"],
                violation["nodes"][0]["html"][:200],
                violation["nodes"][0].get("failureSummary", "")[:300],
            )
            for violation in violations
            if violation["impact"] in ("serious", "critical")
        ]
        assert grave == [], f"{path} at {width} px, {scheme}"


def _axe() -> str:
    axe = pytest.importorskip("axe_core_python", reason="no axe-core: pip install axe-core-python")
    return (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
