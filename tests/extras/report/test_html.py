"""The page holds everything, lets nothing out of its quotes and fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st

from ragbench.extras.report import html
from ragbench.results.measurements import Measurements

BROKEN = "document.title='broken'"


class Page(HTMLParser):
    """Elements with their attributes, the text of scripts and styles, and all other text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag in self.raw:
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.raw:
            self.raw[self._inside][-1] += data
        else:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="session")
def text(ablation: Measurements) -> str:
    return html.render(ablation)


@pytest.fixture(scope="session")
def parsed(text: str) -> Page:
    return Page(text)


def headings(page: Page) -> set[str]:
    return {str(attributes["id"]) for attributes in page.all("section") if attributes.get("id")}


def test_report_ablation_shows_every_section(parsed: Page, ablation: Measurements) -> None:
    expected = {"verdicts", "configurations", "trade-off", "latency", "interactions", "losses", "types", "queries"}
    assert headings(parsed) == expected | {"areas", "environment"}
    assert {str(link["href"]) for link in parsed.all("a")} == {f"#{name}" for name in headings(parsed)} | {"#main"}
    assert {"contexts-table", "polluters-table"} <= {str(table.get("id")) for table in parsed.all("table")}
    for message in (
        "Which of p4, p8 and p10 pay for themselves?",
        "Full factorial over 3 factors (8 arms).",
        "lantern",
        *ablation.arms,
    ):
        assert message in parsed.text
    data = json.loads(parsed.raw["script"][0])
    assert set(data["figures"]) == {"effects", "pareto", "latency", "interactions", "losses"}
    assert {str(folder["data-figure"]) for folder in parsed.all("div") if "data-figure" in folder} == set(
        data["figures"]
    )


def test_report_pipeline_of_an_arm_says_what_differs_from_the_first(parsed: Page, ablation: Measurements) -> None:
    sentences = {arm.text: pipeline.text for arm, _, pipeline in html._recipes(ablation).rows}
    assert sentences["none"] == ablation.pipeline("none")
    assert sentences["p4"] == ablation.pipeline("p4") + " Differs from none in: p4=on."
    assert sentences["p4"] in parsed.text


def test_report_every_verdict_stands_with_its_reason(parsed: Page, ablation: Measurements) -> None:
    import pandas as pd

    verdicts = pd.read_csv(ablation.folder / "verdicts.csv", keep_default_na=False)
    for row in verdicts[verdicts["kind"] == "main"].to_dict(orient="records"):
        assert row["reason"] in parsed.text
    assert "only hints" not in parsed.text
    assert "Means over fewer than 25 queries are unstable." in parsed.text


def test_report_two_arms_without_latency(comparison: Measurements) -> None:
    page = Page(html.render(comparison))
    shown = {"verdicts", "configurations", "losses", "types", "areas", "queries", "environment"}
    assert headings(page) == shown
    assert set(json.loads(page.raw["script"][0])["figures"]) == {"effects", "losses"}


def test_report_one_arm_without_sections(alone: Measurements) -> None:
    page = Page(html.render(alone))
    # Without judged sections, documents are diagnosed, and contexts are not.
    assert "Contexts of" not in page.text
    assert headings(page) == {"configurations", "losses", "types", "areas", "queries", "environment"}
    assert set(json.loads(page.raw["script"][0])["figures"]) == {"losses"}
    assert "Where relevant documents are lost" in html.render(alone)


@pytest.mark.parametrize("which", ["ablation", "comparison"])
def test_report_no_text_breaks_out(which: str, request: pytest.FixtureRequest) -> None:
    text = html.render(request.getfixturevalue(which))
    page = Page(text)
    assert text.count("</script>") == text.count("<script") == len(page.all("script")) == 3
    assert [script.get("type") for script in page.all("script")] == ["application/json", None, None]
    assert page.all("img") == page.all("b") == page.all("iframe") == page.all("object") == []
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    data = json.loads(page.raw["script"][0])
    assert BROKEN in json.dumps(data["explorer"])
    assert BROKEN not in page.raw["script"][1] + page.raw["script"][2]


def test_report_hostile_arm_is_shown_letter_by_letter(comparison: Measurements) -> None:
    page = Page(html.render(comparison))
    assert f"<script>{BROKEN}</script>" in page.text
    bars = json.loads(page.raw["script"][0])["figures"]["losses"]["data"][0]["y"]
    assert f"&lt;script&gt;{BROKEN}&lt;/script&gt;" in bars


def test_report_nothing_is_fetched(parsed: Page, text: str) -> None:
    addresses = [
        (tag, name, value)
        for tag, attributes in parsed.elements
        for name, value in attributes.items()
        if name in {"src", "href", "srcset", "action", "poster", "data", "style"}
    ]
    assert all(str(value).startswith("#") or value == "data:," for _, _, value in addresses), addresses
    assert not re.search(r"url\(|@import|https?:", "".join(parsed.raw["style"]) + parsed.raw["script"][2])
    (policy,) = [str(meta["content"]) for meta in parsed.all("meta") if "http-equiv" in meta]
    assert policy.startswith("default-src 'none';")
    for script in parsed.raw["script"][1:]:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
    assert "unsafe-inline" not in policy.split("style-src")[0]


def test_report_tables_can_be_heard(parsed: Page) -> None:
    tables = parsed.all("table")
    assert len(tables) == len(parsed.all("caption")) >= 7
    assert all(cell.get("scope") in {"col", "row"} for cell in parsed.all("th"))
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = [attributes["aria-labelledby"] for _, attributes in parsed.elements if "aria-labelledby" in attributes]
    assert set(named) <= set(ids)


@pytest.mark.slow
def test_report_equal_results_give_equal_bytes(ablation: Measurements, text: str) -> None:
    code = (
        "import hashlib, sys; from pathlib import Path\n"
        "from ragbench.results import measurements; from ragbench.extras.report import html\n"
        "page = html.render(measurements.load(Path(sys.argv[1])))\n"
        "print(hashlib.sha256(page.encode()).hexdigest())\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(ablation.folder)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == hashlib.sha256(text.encode()).hexdigest()


@given(
    st.recursive(
        st.text() | st.integers() | st.none(),
        lambda item: st.lists(item, max_size=4) | st.dictionaries(st.text(), item, max_size=4),
        max_leaves=8,
    )
)
def test_report_embedded_json_reads_back_and_holds_no_tag(value: object) -> None:
    text = html._script_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


@pytest.mark.slow
def test_report_parts_that_fail_are_named_and_all_others_stand(ablation: Measurements, monkeypatch, caplog) -> None:
    """Every part of the page in turn: a table, a sentence or a figure that cannot be made takes no other with it."""

    def broken(*_: object) -> None:
        raise KeyError("today")

    places = {
        "title": (html, "title"),
        "verdicts": (html.page_tables, "verdicts"),
        "configurations": (html.cells, "arms"),
        "time by stage": (html.cells, "latency"),
        "interactions": (html.page_tables, "interactions"),
        "losses": (html.page_tables, "losses"),
        "recipes": (html, "_recipes"),
        "environment": (html, "environment"),
        "figure of pareto": (html.figures, "plot_pareto"),
        "query by query": (html, "explorer"),
    }
    drawn = html._figures(ablation, html.Parts())
    for name, (module, function) in places.items():
        with monkeypatch.context() as patched, caplog.at_level("DEBUG", logger="ragbench.extras.report.html"):
            if not name.startswith("figure"):
                patched.setattr(html, "_figures", lambda results, parts: drawn)
            patched.setattr(module, function, broken)
            parts = html.Parts()
            page = Page(html.render(ablation, parts))
        assert list(parts.missing) == [name]
        assert f"The part '{name}' could not be made (KeyError: 'today')." in page.text
        assert "KeyError" in caplog.text and name in caplog.text
        assert {"configurations", "queries", "environment"} <= headings(page)
        assert "Effect of turning each proposal on" in page.text or name == "verdicts"
        assert "Means over all measured queries" in page.text or name == "configurations"
        caplog.clear()


def test_report_with_a_missing_part_is_written_and_said(ablation: Measurements, monkeypatch, tmp_path, caplog) -> None:
    monkeypatch.setattr(html.figures, "plot_pareto", lambda results: 1 / 0)
    written = html.write(ablation, tmp_path / "report.html")
    assert caplog.messages == [
        "report: The part 'figure of pareto' could not be made (ZeroDivisionError: division by zero). "
        "What was measured is complete."
    ]
    assert "ZeroDivisionError" in written.read_text(encoding="utf-8")
