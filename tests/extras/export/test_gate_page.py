"""The outcome of a gate as markdown: nothing in it renders, notifies or hides what others wrote."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from ragbench.extras.export.gate_page import GateSection, code, escaped, page, refused
from ragbench.extras.export.moves import Moved, moves

HOSTILE = (
    "`a` ``b", "```", "<!-- x -->", "<script>alert(1)</script>", "[a](http://evil.example)", "@team and #12", "a|b\\|c",
    "two\nlines\r\n# head", "![x](y)", "  ", "*a* _b_ ~~c~~", "\x1b[31mred\u202e",
)  # fmt: skip


def rendered(text: str) -> str:
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


@pytest.mark.parametrize("text", HOSTILE)
def test_code_shows_a_text_and_no_markup(text: str) -> None:
    html = rendered(f"- {code(text)}: end")
    assert re.sub(r"<code>.*?</code>", "CODE", html, flags=re.S) == "<ul>\n<li>CODE: end</li>\n</ul>\n"


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_sentence_has_no_markup(text: str) -> None:
    html = rendered(f"said: {escaped(text)} end")
    assert set(re.findall(r"<(/?\w+)", html)) == {"p", "/p"}
    assert not re.search(r"(?<!\w)[@#]\w", html)


def test_page_begins_with_the_outcome_and_ends_with_advice() -> None:
    lost = [Moved(f"query {n}", "a.md", 1, None, "b.md", counts=True) for n in range(25)]
    won = [Moved("x", "c.md", None, 3)]
    text = page(
        "fails", [GateSection("search", [["level", "change"], ["R@1", "-0.1"]], ["A fact."], lost, won)], "Mend it."
    )
    assert text.startswith("## Search gate fails: 25 queries lost, 1 query won\n\n### search\n\n| level | change |\n")
    assert "- `query 0`: `a.md` was at 1, is not in 10; at 1 is now `b.md`\n" in text
    assert "- and 5 more, in the output of the command\n\n**Won**\n\n- `x`: `c.md` was not in 10, is at 3\n" in text
    assert text.endswith("A fact.\n\n**What to do.** Mend it.\n")
    assert "<td" in rendered(text)


def test_refused_page_says_why() -> None:
    assert "a \\| b &lt;c&gt;" in refused("a | b <c>")


def test_moves_compare_by_query_when_pages_are_renamed() -> None:
    before = {"a": {"old.md": 2}, "b": {"b.md": 9}, "c": {"c.md": None}, "d": {"d.md": 1}, "e": {}}
    now = {"a": {"new.md": 3}, "b": {"b.md": None}, "c": {"c.md": 10}, "d": {}}
    lost, won = moves(before, now, 10, {"b": ["x.md"], "d": ["y.md"]})
    assert lost == [Moved("b", "b.md", 9, None, "", False), Moved("d", "d.md", 1, None, "y.md", True)]
    assert won == [Moved("c", "c.md", None, 10)]
