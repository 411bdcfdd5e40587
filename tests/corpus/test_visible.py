"""What a reader of a page sees is its text: constructs of markdown dialects, alone and composed at random."""

import html
import re

import lxml.html
import pytest
from hypothesis import given, settings, strategies as st
from markdown_it import MarkdownIt

from ragbench.corpus.reader import parse_document
from ragbench.corpus.visible import visible
from tests.tables import rows

BASE64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" * 20


@pytest.mark.parametrize(
    ("written", "text"),
    [*rows("corpus_visible", "visible_text_of_a_construct"), (f"a {BASE64} b", "a  b")],
)
def test_visible_text_of_a_construct(written: str, text: str) -> None:
    assert visible(written).text == text


@pytest.mark.parametrize("written", rows("corpus_visible", "visible_keeps_code_and_plain_text"))
def test_visible_keeps_code_and_plain_text(written: str) -> None:
    assert visible(written).text == written


def test_visible_text_of_mdx() -> None:
    written = (
        "import Tabs from '@theme/Tabs'\n\n# Start\n\n<Tabs values={[{label: 'macOS', value: 'm'}]}>\n"
        '  <TabItem value="m" label="Mac">\n\n  Text {props.x} {"shown"} {/* not */}\n\n  </TabItem>\n</Tabs>\n'
        '<Card icon={<Icon name="x"/>} onClick={() => { a > b }} title="See also"/>\n'
    )
    text = visible(written, mdx=True).text
    assert text.split() == ["#", "Start", "macOS", "Mac", "Text", "shown", "See", "also"]
    assert text.count("\n") == written.count("\n")


def test_math_and_escaped_braces_of_mdx_are_text() -> None:
    written = "\\{braces\\} of $\\frac{depth}{width}$\n\n$$\n\\text{force}\n$$\n"
    assert visible(written, mdx=True).text == written


def test_headings_of_html_make_sections_with_ids() -> None:
    page = '<h1 align="center">Ferry line</h1>\n\n<h2 id="tickets">Tickets</h2>\n\nBuy.\n\n<h2>Dogs</h2>\n\n'
    page += '<a name="pets"></a>\nFree.\n'
    document, _ = parse_document("ferry", "ferry.md", page.encode(), 0.0)
    assert document.title == "Ferry line"
    assert [section.path[-1] for section in document.sections] == ["Ferry line", "Tickets", "Dogs"]
    assert [section.ids for section in document.sections] == [(), ("tickets",), ("pets",)]


def test_table_of_html_becomes_one_of_markdown() -> None:
    written = "<table>\n<tr><th>relay</th><th>volts</th></tr>\n<tr><td>r1</td><td>12 | 24</td></tr>\n</table>"
    assert visible(written).text == "| relay | volts |\n| --- | --- |\n| r1 | 12 \\| 24 |\n"


def test_html_in_an_admonition_stays_in_it() -> None:
    written = "!!! note\n    <h3>Why</h3>\n\n    Text.\n\n    > <h3>How</h3>\n    > So.\n"
    document, _ = parse_document("a", "a.md", written.encode(), 0.0)
    assert document.text == "!!! note\n    ### Why\n\n    Text.\n\n    > ### How\n    > So.\n"
    assert [section.path for section in document.sections] == [()]


def test_html_is_no_markdown() -> None:
    document, _ = parse_document("a", "a.md", b"<div>\n# no heading\n</div>\n", 0.0)
    assert [section.path for section in document.sections] == [()]


def test_footnote_of_one_word_is_no_link() -> None:
    document, _ = parse_document("a", "a.md", b"Noon[^1].\n\n[^1]: Pilots\n", 0.0)
    assert document.links == () and "Pilots" in document.text


@pytest.mark.parametrize(
    ("front", "line"),
    [
        ('+++\ntitle = "Tides"\ntags = ["Sea"]\nat = 07:00:00\n+++\n', 6),
        ('{\n  "title": "Tides",\n  "tags": ["Sea"],\n  "params": {"a": 1}\n}\n', 6),
        ("---\ntitle: Tides\ntags: [Sea]\n---\n", 5),
    ],
)
def test_frontmatter_in_three_forms(front: str, line: int) -> None:
    document, warnings = parse_document("a", "a.md", f"{front}High water.\n".encode(), 0.0)
    assert (document.title, document.tags, document.text) == ("Tides", ("sea",), "High water.\n")
    assert document.first_line == line and warnings == []


def test_left_out_parts_are_named_with_their_kind() -> None:
    _, warnings = parse_document("a", "a.md", f"a <!-- x -->\n\n{BASE64}\n".encode(), 0.0)
    assert [warning.name for warning in warnings] == ["comment", "bytes"]
    assert str(len(BASE64)) in warnings[1].message


def test_long_path_of_an_address_is_no_encoded_bytes() -> None:
    path = "com/lighthouse/blob/faee8f1bdb8822a5653a81eba838dddf224d92d6/" + "keeper/of-the-lamp/" * 6 + "Schema5"
    address = f"[schema](https://example.{path})\n"
    document, warnings = parse_document("a", "a.md", address.encode(), 0.0)
    assert (document.text, warnings) == (address, [])
    _, warnings = parse_document("a", "a.md", f"https://example.com/a?signed={BASE64}\n".encode(), 0.0)
    assert [warning.name for warning in warnings] == ["bytes"]


WORD = st.sampled_from(
    ["anchor", "berth", "crane", "dock", "ebb", "ferry", "gale", "hull", "inlet", "jetty", "keel", "lamp"]
)
TEXT = st.lists(WORD, min_size=1, max_size=6).map(" ".join)
INLINE = st.one_of(
    TEXT,
    TEXT.map(lambda text: f"<b>{text}</b>"),
    TEXT.map(lambda text: f"<span class='x'>{text}</span>"),
    TEXT.map(lambda text: f"`<i>{text}`"),
    TEXT.map(lambda text: f"a &amp; {text}&nbsp;z"),
    TEXT.map(lambda text: f"[{text}](other.md)"),
    TEXT.map(lambda text: f"<!-- {text.upper()} -->"),
    TEXT.map(lambda text: f'<a href="https://x.org/y">{text}</a>'),
)
PARAGRAPH = st.builds(lambda first, more: " ".join([first, *more]), TEXT, st.lists(INLINE, max_size=5))
BLOCK = st.one_of(
    PARAGRAPH,
    TEXT.map(lambda text: f"## {text}"),
    TEXT.map(lambda text: f'<h2 class="y">{text}</h2>'),
    TEXT.map(lambda text: f"<!--\n## {text.upper()}\n\n{text.upper()}\n-->"),
    TEXT.map(lambda text: f"<script>\n{text.upper()}\n</script>"),
    TEXT.map(lambda text: f"```\n<p>{text} {{{{ x }}}}\n```"),
    TEXT.map(lambda text: f'<div align="center">\n  <p>{text}</p>\n</div>'),
    TEXT.map(lambda text: f"<details>\n<summary>{text}</summary>\n\n{text}\n\n</details>"),
    TEXT.map(lambda text: f"<table>\n<tr><td>{text}</td><td>{text}</td></tr>\n</table>"),
    st.lists(TEXT, min_size=1, max_size=4).map(lambda items: "\n".join(f"- {item}" for item in items)),
    TEXT.map(lambda text: f"| a | b |\n|---|---|\n| {text} | {text} |"),
    TEXT.map(lambda text: f"> {text}"),
)


def words_of_renderer(text: str) -> list[str]:
    """The words of a page as CommonMark's HTML shows them, in order."""
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    tree = lxml.html.fromstring(f"<div>{rendered}</div>")
    for element in tree.xpath("//script|//style|//template|//comment()"):
        element.drop_tree()
    return re.findall(r"\w+", " ".join(tree.itertext()))


def words_of_page(text: str) -> list[str]:
    """The words of our text, without markup: destinations of links are what a reader follows, not what one sees."""
    return re.findall(r"\w+", html.unescape(re.sub(r"\]\([^()\s]*\)", "]", text)))


@settings(deadline=None, max_examples=150)
@given(st.lists(BLOCK, min_size=1, max_size=12).map("\n\n".join))
def test_visible_text_has_the_words_of_a_renderer(written: str) -> None:
    page = visible(written)
    assert words_of_page(page.text) == words_of_renderer(written)
    assert page.text.count("\n") >= written.count("\n")


@pytest.mark.parametrize(
    ("page", "ids"),
    [
        ("(berth-rules)=\n# Berths\n\nx\n", {"Berths": ("berth-rules",)}),
        ("# Berths\n{: #berth-rules .wide}\n\nx\n", {"Berths": ("berth-rules",)}),
        ("# Berths\n\nx\n\n# Cranes\n\n[](){#berth-rules}\n", {"Berths": (), "Cranes": ("berth-rules",)}),
        ("# Berths\n\n![x](a.png){#berth-rules width=3}\n", {"Berths": ("berth-rules",)}),
        ("# Berths :id=berth-rules\n\nx\n", {"Berths": ("berth-rules",)}),
        ("# Berths <!-- #berth-rules -->\n\nx <!-- #y -->\n", {"Berths": ("berth-rules",)}),
        ("# Berths\n\nx ^last-1\n\n# Cranes\n\ny\n", {"Berths": ("^last-1",), "Cranes": ()}),
    ],
    ids=["MyST", "kramdown", "MkDocs", "Pandoc", "Docsify", "Docusaurus", "Obsidian"],
)
def test_ids_of_other_dialects_name_their_section(page: str, ids: dict[str, tuple[str, ...]]) -> None:
    document, _ = parse_document("a", "a.md", page.encode(), 0.0)
    assert {section.path[-1]: section.ids for section in document.sections if section.path} == ids


def test_tabs_and_callouts_make_no_sections() -> None:
    page = "# Install\n\n# [Mac](#tab/mac)\n\nx\n\n# [Linux](#tab/linux)\n\ny\n\n***\n\n## After\n\n"
    page += "::: {.callout-note}\n## Mind\nz\n:::\n"
    document, _ = parse_document("a", "a.md", page.encode(), 0.0)
    assert [section.path for section in document.sections] == [("Install",), ("Install", "After")]


def test_code_of_directives_has_its_language() -> None:
    page = "```{code-block} python\n:linenos:\nx = 1\n```\n\n```{r setup}\ny\n```\n"
    document, _ = parse_document("a", "a.md", page.encode(), 0.0)
    assert [(code.language, code.code) for code in document.code_blocks] == [("python", "\nx = 1\n"), ("r", "y\n")]


def test_directive_without_an_end_keeps_its_text() -> None:
    assert visible("```{note}\nx\n\nlast words").text == "Note\nx\n\nlast words"
