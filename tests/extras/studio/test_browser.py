"""The studio in a real browser: rank, worst query, search, judge by keys, start an ablation, cancel, see a verdict."""

from __future__ import annotations

import json
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

import pytest

from ragbench.results import store
from tests.browser import BROWSER, DRIVER, MISSING, chromium

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (BROWSER and DRIVER), reason=MISSING)]
WIDE = """
if (document.documentElement.scrollWidth <= window.innerWidth) return [];
return [...document.querySelectorAll("main *")]
  .filter((each) => !each.closest(".scroll") && each.getBoundingClientRect().right > window.innerWidth)
  .map((each) => each.outerHTML.slice(0, 120)).slice(0, 3);
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
def visit(project: Path, words: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    results = tmp_path_factory.mktemp("browser") / "results"
    shutil.copytree(project, results)
    command = [sys.executable, "-m", "ragbench", "studio", "--port", "0", *words, f"paths.results={results}"]
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
def nothing_said_before(visit: Visit) -> None:
    """What the pages of other tests complained of is no longer in the browser's log."""
    visit.complaints()


@pytest.fixture(autouse=True)
def nothing_hostile_ran(visit: Visit) -> Iterator[None]:
    yield
    assert visit.chrome.title != "broken"


def lead_to_the_worst_query(visit: Visit) -> None:
    visit.open("/")
    visit.click("a[aria-label^='Make'][aria-label*='baseline']")
    visit.click("a[aria-label^='Queries of']")


def test_runs_are_ranked_and_the_worst_query_opens_with_its_hits(visit: Visit) -> None:
    visit.open("/")
    records = [json.loads(path.read_text()) for path in visit.results.glob(f"runs/*/{store.RECORD}")]
    rows = sum(len(record["arms"]) for record in records)  # four, and those that another test has started
    assert len(visit.all("#board tbody tr")) == rows >= 4
    visit.one("#words").send_keys("lexical_only")
    visit.until(lambda: len([row for row in visit.all("#board tbody tr") if row.is_displayed()]) < rows, "fewer rows")
    lead_to_the_worst_query(visit)
    effects = [cell.text for cell in visit.all("#topics td:last-child")]
    assert len(effects) == 5
    first = visit.text("#detail h2")
    assert visit.text("#topics tr.chosen").strip().startswith(first)
    visit.press("j")
    second = visit.text("#detail h2")
    assert second != first
    deep = visit.chrome.current_url
    assert "token" not in deep
    visit.press("k")
    assert visit.text("#detail h2") == first
    visit.chrome.get(deep)
    assert visit.text("#detail h2") == second
    assert visit.all(".hits li")
    assert visit.complaints() == []


def test_a_hostile_topic_and_document_are_text(visit: Visit) -> None:
    lead_to_the_worst_query(visit)
    visit.chrome.get(visit.chrome.current_url + "&qid=t6")
    assert "<b onmouseover=" in visit.text("#detail h2")
    assert visit.all("#detail script, #detail img, #detail b[onmouseover]") == []
    assert "document.title='broken'" in visit.text("#detail .title")
    assert visit.complaints() == []


def test_a_search_shows_both_sides_and_t_makes_a_topic(visit: Visit) -> None:
    visit.open("/search")
    visit.one("[name=q]").send_keys("lamps </script> and dusk")
    visit.one("[name=right]").send_keys("+exp=lexical_only")
    visit.leave(visit.one("[name=q]").submit)
    assert len(visit.all(".sides > section")) == 2
    visit.one("summary").click()
    visit.press("t")
    assert "1 topic in" in visit.text("[role=status]")
    assert visit.complaints() == []


def test_twenty_pairs_are_judged_by_keys_and_taken_back(visit: Visit) -> None:
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


def test_an_ablation_is_started_cancelled_and_another_ends_with_its_verdict(visit: Visit) -> None:
    visit.open("/experiments?command=ablate&exp=baseline&words=design%3Dadd_one+factors%3D%5Bp1%2Cp4%2Cp10%5D")
    visit.click("#start")
    visit.until(lambda: visit.text("#state") == "running", "the job")
    visit.click("#cancel")
    visit.until(lambda: visit.text("#state") == "cancelled" and not visit.all("#cancel"), "its end")
    visit.open("/experiments?command=ablate&exp=lexical_only&words=design%3Dadd_one+factors%3D%5Bp4%5D")
    visit.click("#start")
    visit.until(lambda: visit.all("iframe.report"), "the report", 180)
    visit.chrome.switch_to.frame(visit.one("iframe.report"))
    visit.until(lambda: re.search("inconclusive|adopt|reject|equivalent", visit.text("body")), "the verdict")
    visit.chrome.switch_to.default_content()
    assert [each for each in visit.complaints() if "favicon" not in each] == []


def paths(visit: Visit) -> list[str]:
    visit.open("/")
    arms = [str(box.get_attribute("value")) for box in visit.all("#board [name=arm]")]
    other = next(arm for arm in arms if "<script>" in arm)
    base = f"{other.partition('/')[0]}/baseline"
    from urllib.parse import urlencode

    pair = urlencode({"left": base, "right": other})
    return [
        f"/?{urlencode({'base': base, 'pin': base})}",
        f"/compare?{urlencode([('arm', base), ('arm', other)])}",
        f"/queries?{pair}&qid=t6",
        "/search?q=lamps&right=%2Bexp%3Dlexical_only",
        "/judging",
        "/experiments?command=run&exp=baseline",
        "/nowhere",
    ]


VERDICT = "return document.querySelector('#board td.verdict .badge').getBoundingClientRect().right"
BROKEN = """
return [...document.querySelectorAll("#board .pick")].filter((label) => {
  const name = document.createRange();
  name.selectNodeContents(label.lastChild);
  return !/[\\s-]/.test(label.textContent.trim()) && name.getClientRects().length > 1;
}).map((label) => label.textContent);
"""


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_pages_fit_and_are_accessible(visit: Visit, width: int, scheme: str) -> None:
    axe = _axe()
    for path in paths(visit):
        visit.open(path, width, scheme)
        assert visit.chrome.execute_script(WIDE) == [], f"{path} does not fit into {width} pixels"
        if path.startswith("/?"):  # the verdict is seen without scrolling, names are not broken
            assert visit.chrome.execute_script(VERDICT) <= width and visit.chrome.execute_script(BROKEN) == []
        found = visit.chrome.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
        assert "exceptionDetails" not in found
        found = visit.chrome.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations))"
        )
        grave = [
            (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0].get("failureSummary", "")[:300])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        assert grave == [], f"{path} at {width} px, {scheme}"


def _axe() -> str:
    axe = pytest.importorskip("axe_core_python", reason="no axe-core: pip install axe-core-python")
    return (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
