"""The page in a real browser, opened from a file without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragbench.extras.report import html
from ragbench.report.cells import MINUS
from ragbench.results.measurements import Measurements
from tests.browser import BROWSER, DRIVER, MISSING, chromium

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

DASH = "\u2013"
_DRAWN = """
return location.href === arguments[0] && document.readyState === "complete"
  && Boolean(document.getElementById("summary")?.textContent);
"""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (BROWSER and DRIVER), reason=MISSING)]


@pytest.fixture(scope="module")
def pages(
    ablation: Measurements, comparison: Measurements, alone: Measurements, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, results in (("ablation", ablation), ("comparison", comparison), ("alone", alone)):
        html.write(results, folder / f"{name}.html")
    return folder


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile"), 1280, 900) as driver:
        yield driver


def open_page(chrome: Chrome, path: Path, scheme: str = "light", width: int = 1280) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    chrome.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    chrome.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    chrome.get(path.as_uri())
    # On a busy machine the driver may answer before the page's scripts are done; the summary is the last they write.
    WebDriverWait(chrome, 60).until(lambda item: item.execute_script(_DRAWN, path.as_uri()))


def find(chrome: Chrome, selector: str) -> list[WebElement]:
    from selenium.webdriver.common.by import By

    return chrome.find_elements(By.CSS_SELECTOR, selector)


def press(chrome: Chrome, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(chrome).send_keys(*keys).perform()


def choose(chrome: Chrome, name: str, text: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.select import Select

    Select(chrome.find_element(By.ID, name)).select_by_visible_text(text)


def texts(chrome: Chrome, selector: str) -> list[str]:
    result: list[str] = chrome.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)", selector
    )
    return result


def rgb(chrome: Chrome, script: str) -> tuple[float, ...]:
    value = str(chrome.execute_script(script))
    return tuple(float(part) for part in value[value.index("(") + 1 : -1].split(",")[:3])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["ablation", "comparison", "alone"])
def test_report_page_opens_without_error_or_request(chrome: Chrome, pages: Path, name: str, scheme: str) -> None:
    open_page(chrome, pages / f"{name}.html", scheme)
    assert chrome.execute_script("return document.querySelectorAll('.plot .main-svg').length > 0")
    assert chrome.title != "broken"
    assert chrome.execute_script("return performance.getEntriesByType('resource').map(each => each.name)") == []
    assert [entry for entry in chrome.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")] == []


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_report_page_paper_and_ink_follow_the_scheme(chrome: Chrome, pages: Path, scheme: str, dark: bool) -> None:
    open_page(chrome, pages / "ablation.html", scheme)
    paper = rgb(chrome, "return getComputedStyle(document.body).backgroundColor")
    ink = rgb(chrome, "return getComputedStyle(document.body).color")
    label = rgb(chrome, "return getComputedStyle(document.querySelector('#plot-effects .ytick text')).fill")
    assert (max(paper) < 60 and min(ink) > 200) is dark
    assert label == ink


@pytest.mark.parametrize("width", [360, 768, 1280, 1900])
def test_report_page_no_width_makes_the_page_scroll_sideways(chrome: Chrome, pages: Path, width: int) -> None:
    open_page(chrome, pages / "ablation.html", width=width)
    chrome.execute_script("document.querySelector('#explorer .open').click()")
    assert chrome.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert chrome.execute_script("return document.querySelector('#explorer').offsetWidth <= window.innerWidth")


def test_report_page_sorting_by_difference_and_by_name(chrome: Chrome, pages: Path) -> None:
    open_page(chrome, pages / "comparison.html")
    order = texts(chrome, "#explorer .qid")
    shown = [
        abs(float(value.replace(MINUS, "-"))) for value in texts(chrome, "#explorer td:last-child") if value != DASH
    ]
    assert shown == sorted(shown, reverse=True)
    choose(chrome, "sort", "name")
    assert texts(chrome, "#explorer .qid") == sorted(order) == ["t1", "t2", "t3", "t4", "t5", "t6"]
    gains = texts(chrome, "#explorer td:last-child")
    choose(chrome, "left", "<script>document.title='broken'</script>")
    choose(chrome, "right", "baseline")
    swapped = texts(chrome, "#explorer td:last-child")
    turned = {"+": MINUS, MINUS: "+"}
    assert swapped == [turned.get(value[0], value[0]) + value[1:] if value[:1] in turned else value for value in gains]


def test_report_page_choosing_a_type_and_words(chrome: Chrome, pages: Path) -> None:
    open_page(chrome, pages / "ablation.html")
    choose(chrome, "type", "code")
    assert texts(chrome, "#explorer .qid") == ["t3"]
    choose(chrome, "type", "all")
    (words,) = find(chrome, "#words")
    words.send_keys("PASSWORDS")
    assert texts(chrome, "#explorer .qid") == ["t4"]
    assert texts(chrome, "#summary")[0].startswith("1 query: ")


def test_report_page_query_opens_by_keyboard_and_shows_both_sides(chrome: Chrome, pages: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    open_page(chrome, pages / "ablation.html")
    choose(chrome, "right", "p8")
    choose(chrome, "sort", "name")
    (words,) = find(chrome, "#words")
    words.click()
    press(chrome, Keys.TAB)
    focused = "return document.activeElement.querySelector('.qid')?.textContent"
    assert chrome.execute_script(focused) == "t1"
    outline = "return getComputedStyle(document.activeElement).outline"
    assert "solid 3px" in chrome.execute_script(outline)
    press(chrome, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP)
    assert chrome.execute_script(focused) == "t2"
    press(chrome, Keys.END)
    assert chrome.execute_script(focused) == "t6"
    press(chrome, Keys.HOME, Keys.ENTER)
    assert chrome.execute_script("return document.activeElement.ariaExpanded") == "true"
    heads = texts(chrome, ".detail .sides h4 span:first-child")
    assert heads == ["none", "p8"]
    assert all("1" in rank for rank in texts(chrome, ".detail .hits li:first-child .rank"))
    assert "document 3" in texts(chrome, ".detail .grade")
    assert any(mark.upper().startswith("LNT") for mark in texts(chrome, ".detail mark"))
    assert "reference/errors#error-codes" in texts(chrome, ".detail .missed th[scope=row]")
    press(chrome, Keys.ESCAPE)
    assert find(chrome, ".detail") == []
    assert chrome.execute_script(focused) == "t1"
    press(chrome, Keys.SPACE)
    assert len(find(chrome, ".detail")) == 1
    press(chrome, Keys.SPACE)
    assert find(chrome, ".detail") == []


def test_report_page_one_tab_leads_past_the_list(chrome: Chrome, pages: Path) -> None:
    open_page(chrome, pages / "ablation.html")
    inside = "return [...document.querySelectorAll('#explorer .open')].filter(each => each.tabIndex === 0).length"
    assert chrome.execute_script(inside) == 1


def test_report_page_hostile_text_is_read_and_not_run(chrome: Chrome, pages: Path) -> None:
    open_page(chrome, pages / "ablation.html")
    for button in find(chrome, "#explorer .open"):
        chrome.execute_script("arguments[0].click()", button)
    shown = texts(chrome, ".detail .title") + texts(chrome, ".detail .snippet")
    assert any("<script>document.title='broken'</script>" in text for text in shown)
    assert any("<img src=x onerror=" in text for text in shown)
    assert find(chrome, "main img, main b[onmouseover], main iframe") == []
    assert chrome.title != "broken"
    assert [entry for entry in chrome.get_log("browser") if entry["level"] == "SEVERE"] == []
