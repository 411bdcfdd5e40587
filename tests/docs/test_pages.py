"""Pages: links lead somewhere, generated parts are current, and ragbench takes every call."""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path

import pytest

from ragbench.base.types import RagbenchError
from ragbench.config import available, names as switch_names
from tests.browser import shown
from tests.docs.pages import PAGES, ROOT, blocks, compose, name
from tools import configuration_page, screens as terminal

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
GENERATED = re.compile(r"<!-- [a-z]+[: -].*?<!-- end of [a-z]+ -->", re.S)
HEADING = re.compile(r"^#+ +(.+?) *$", re.M)


@pytest.mark.slow
def test_calls_on_pages_compose() -> None:
    calls = {(name(block.page), *words) for block in blocks() for words in block.calls}
    assert len(calls) > 100
    refused = []
    for page, *words in sorted(calls):
        try:
            compose(words)
        except (AssertionError, RagbenchError, argparse.ArgumentError, SystemExit) as error:
            refused.append(f"{page}: {shlex.join(words)}: {error!r}")
    assert refused == []


def slug(heading: str) -> str:
    words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
    return words.strip().replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {slug(heading) for heading in HEADING.findall(text)}


def test_links_of_pages_lead_somewhere() -> None:
    data_sheets = sorted((ROOT / "qrels").glob("*/DATASHEET.md"))
    assert [link for page in [*PAGES, *data_sheets] for link in dead_links(page)] == []


def dead_links(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere, each with what is missing."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    for link in LINK.findall(text):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if not path.exists():
            yield f"{name(page)}: {link} leads nowhere"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield f"{name(page)}: {link}: {path.name} has no such heading"


def test_pages_are_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    left = [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        links = LINK.findall(page.read_text(encoding="utf-8"))
        left += [(page.parent / link.partition("#")[0]).resolve() for link in links]
    assert set(PAGES) <= seen


def test_configuration_page_has_every_switch_with_its_parameters() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    switches = configuration_page.shipped(available.read())
    assert configuration_page.switches(available.read()) in page, "run: python tools/reference.py"
    for group in switches:
        section = re.split(r"^##", page.partition(f"\n### {group.name}\n")[2], maxsplit=1, flags=re.M)[0]
        for parameter in group.parameters:
            assert f"`{parameter.key}={parameter.short}`" in section and parameter.comment in section, parameter
    text = (ROOT / "docs" / "optional-features.md").read_text(encoding="utf-8")
    effects = text.partition("<!-- effects -->")[2].partition("<!-- end of effects -->")[0]
    proposals = [group.name for group in switches if group.name in switch_names.ALIASES]
    assert len(proposals) == 13
    for proposal in proposals:
        assert f"\n| `{switch_names.label(proposal)}` | " in effects, f"{proposal} has no measured effect"


@pytest.mark.parametrize("page", ["command-line.md", "configuration.md", "python-api.md"])
def test_generated_reference_is_current(page: str) -> None:
    write = runpy.run_path(str(ROOT / "tools" / "reference.py"))["PAGES"][page]
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == write(), "run: python tools/reference.py"


def test_python_page_lists_inherited_members_that_users_need_once() -> None:
    page = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
    for owner, members in runpy.run_path(str(ROOT / "tools" / "reference.py"))["INHERITED"].items():
        section = re.split(r"^## ", page.partition(f"\n## {owner}\n")[2], maxsplit=1, flags=re.M)[0]
        listed = re.findall(rf"^(?:- `|### {owner}\.)(\w+)", section, re.M)
        assert members <= set(listed) and len(listed) == len(set(listed))


def test_first_screen_is_the_same_on_every_first_page_and_is_an_adopt() -> None:
    texts = [(ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("quickstart.md", "read-results.md")]
    screens = [text[text.index("```\nnDCG@10") :].partition("\n```\n")[0] for text in texts]
    assert len(set(screens)) == 1 and "\nverdict   adopt: " in screens[0]


def test_first_picture_shows_the_reference_results_and_an_adopt() -> None:
    """Within .005, because int8 models round differently on other CPUs."""
    screen = unescape(re.sub(r"<[^>]+>", "", terminal.PICTURE.read_text(encoding="utf-8")))
    assert "nDCG@10 on builtin (test split" in screen and "verdict   adopt: " in screen, "run: make screens"
    means = [float(mean) for mean in re.findall(r"documents (\S+) -> (\S+):", screen)[0]]
    assert means == pytest.approx([float(reference(arm)["nDCG@10"]) for arm in ("baseline", "recommended")], abs=0.005)


def test_picture_of_mlflow_shows_the_train_queries_of_the_reference() -> None:
    """Within .01, because int8 models round differently on other CPUs."""
    values = dict(each.split() for each in shown(ROOT / "docs" / "images" / "mlflow.png"))
    assert list(values) == ["baseline", "phase1", "phase2", "phase3", "phase4"], "run: make screenshot"
    for arm, mean in values.items():
        assert float(mean) == pytest.approx(float(reference(arm)["train"]), abs=0.01), f"{arm}: run: make screenshot"


MADE_UP = "+0.004 [-0.011, +0.019] +0.004 [-0.031, +0.039]"  # in the definition of equivalent
MEASURED_HERE = {"docs/other-languages.md"}  # its table is of 20 queries that are in tests/data/german
REFERENCE_PAGES = {f"docs/{page}.md" for page in ("command-line", "configuration", "python-api")}
TRIPLE = re.compile(r"[+-]\d\.\d{3},? (?:95% CI )?\[[+-]\d\.\d{3}, [+-]\d\.\d{3}\]")
MEAN = re.compile(r"(?<![\d.])[+-]?0?(\.\d{3})(?!\d)")


def figures(text: str) -> set[str]:
    """The effects with their intervals, and all numbers of three decimals without sign and 0, in a text."""
    return {re.sub(r",? (?:95% CI )?\[", " [", found) for found in TRIPLE.findall(text)} | set(MEAN.findall(text))


def test_figures_on_pages_are_those_of_their_sources() -> None:
    """An effect with its interval, or a mean, on README or a page of docs/ stands in a file of measurements."""
    sources = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "research").glob("*.md"))
    sources += "".join(GENERATED.findall((ROOT / "docs" / "findings.md").read_text(encoding="utf-8"))) + MADE_UP
    known = figures(sources)
    unknown = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        if (missing := sorted(figures(text) - known)) and name(page) not in MEASURED_HERE | REFERENCE_PAGES:
            unknown[name(page)] = missing
    assert unknown == {}


def reference(arm: str) -> dict[str, str]:
    """The row of a preset in the reference results."""
    text = (ROOT / "docs" / "research" / "reference.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.partition("## Presets")[2].splitlines()]
    (row,) = (cells for cells in lines[:40] if cells[0] == arm)
    return dict(zip(lines[2], row, strict=True))


def test_table_of_findings_is_that_of_the_reference() -> None:
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8").partition("<!-- presets: ")[2]
    names = text.partition(" -->")[0].split()
    rows = {row[0]: row for row in re.findall(r"^\| `(\w+)`.*? \| (\S+) \| (\S+) \|.* \| (\d+) \|$", text, re.M)}
    for arm in names:
        row = reference(arm)
        assert rows[arm][1:] == (row["nDCG@10"], row["passages"], f"{float(row['p95 ms']):.0f}"), arm


@pytest.mark.parametrize("page", ["README.md", "docs/findings.md"])
def test_added_latency_of_all_proposals_is_that_of_the_reference(page: str) -> None:
    added = float(reference("tuned_all")["p95 ms"]) - float(reference("baseline")["p95 ms"])
    assert f" {added:.0f} ms" in (ROOT / page).read_text(encoding="utf-8")


def test_screens_have_the_marks_that_make_screens_looks_for() -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    screens = page.partition("## Output of each command")[2].partition("\n## ")[0]
    assert screens.count("```\n") == 2 * len(re.findall(r"^\$ ragbench", page, re.M)) > 0


def test_pages_name_no_path_of_a_machine() -> None:
    for page in PAGES:
        assert not re.search(r"/work/|/root/|/home/\w|pypi\.org", page.read_text(encoding="utf-8")), page
