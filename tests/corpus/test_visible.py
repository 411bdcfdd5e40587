"""What a reader of a page sees is its text: constructs of markdown dialects, alone and composed at random."""

import html
import re

import lxml.html
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragbench.corpus.reader import parse_document
from ragbench.corpus.visible import visible

BASE64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" * 20


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a <!-- hidden --> b", "a  b"),
        ("<!--\n## Hidden\n\n```\n-->\nb", "\n\n\n\n\nb"),
        ("a <!-- b\n\n<!-- hidden\n\n# Hidden", "a <!-- b\n\n\n\n"),
        ("  <!-- hidden\n  -->\n\n  b", "  \n\n\n  b"),
        ("a %% hidden %% b", "a  b"),
        ("a {/* hidden */} b", "a  b"),
        ("[//]: # (hidden)\n[comment]: <> (hidden, too)\nb", "\n\nb"),
        ("{% raw %}\n{{ shown }} {% if x %}\n{% endraw %}\n{{ not }}", "\n{{ shown }} {% if x %}\n\n"),
        ("<span v-pre>{{ shown }}</span> {{ not }}", "{{ shown }} "),
        ("::: v-pre\n{{ shown }}\n:::", "\n{{ shown }}\n"),
        ('{% include note.html content="Mind the gap." %}', "Mind the gap."),
        ("{{#include src/a.rs:1:3}}", "src/a.rs"),
        ("[!code-csharp[Main](a.cs)]", "a.cs"),
        ("::: package.Module", "package.Module"),
        ("::: package_name", "package_name"),
        ('![x](a.png){ width="3" align=left }', "![x](a.png)"),
        ("Text.\n{ .annotate }", "Text.\n"),
        ("[:octicons-arrow-right-24: Start](a.md) :ship:", "[ Start](a.md) :ship:"),
        ("%%\nhidden\n\nmore\n%%\nb", "\n\n\n\n\nb"),
        ("<script>\nvar a = '<b>';\n</script>\n\nb", "\n\n\n\nb"),
        ("<div hidden>\n\nsecret\n\n</div>\n\nb", "\n\n\n\n\n\nb"),
        ("press <kbd>Ctrl</kbd>+<kbd>C</kbd>", "press Ctrl+C"),
        ("<details><summary>Why?</summary>\n\nSo.\n\n</details>", "Why?\n\nSo.\n\n"),
        ('<p align="center">\n    Deep\n</p>', "\nDeep\n"),
        ('<img src="a.png" alt="A harbour">', "A harbour"),
        ('<a href="https://x.org">out</a> <a href="b.md">in</a>', "out [in](b.md)"),
        ("&nbsp;&copy; &lt;b&gt;", " © &lt;b&gt;"),
        ("![x](data:image/png;base64,AAAA)", "![x]()"),
        (f"a {BASE64} b", "a  b"),
        ('{{< tab "npm" >}} x {{< /tab >}}', "npm x "),
        ('{{% alert title="Careful" %}}\nx', "Careful\nx"),
        ('[a]({{< ref "b.md" >}})', "[a](b.md)"),
        ("{% include 'x' %}a {{ page.title }}", "a "),
        ("{# note #}a", "a"),
        (":::tip[Read this]\nx\n:::", "Read this\nx\n"),
        ("::: warning\nx\n:::", "Warning\nx\n"),
        ('--8<-- "docs/file.md"\nx', "docs/file.md\nx"),
        ("{* ../src/a_proxy.py hl[8] *}\nx", "../src/a_proxy.py\nx"),
        ("Text. ^a1b2c3\n\nMore", "Text.\n\nMore"),
        ("```dataview\nLIST\n```\nx", "\n\n\nx"),
        ("## Day {#daytime}", "## Day"),
        ("<span>a</span><span>b</span>", "a b"),
        (
            "==\u26a0  Switch to EXCALIDRAW VIEW \u26a0== more\n\n# Excalidraw Data\n\n## Text Elements\nBerths ^a1B2"
            "\n\n## Embedded Files\n4b6bf1d0aa11bb22cc33dd44ee55ff6677889900: [[a.png]]"
            "\n\n%%\n## Drawing\n```compressed-json\nN4Kg\n```\n%%",
            "\n\n\n\n\nBerths\n\n\n\n\n\n\n\n\n\n",
        ),
        ('<iframe class="x"src="https://x.org"></iframe>a', "a"),
        (r"<code>a\_b</code>", "`a_b`"),
        ("| <code>a &vert; b</code> |", r"| `a \| b` |"),
        (
            "<table>\n<tr><td>a</td><td>\n\n    b\n\n    </td></tr>\n</table>",
            "|  |  |\n| --- | --- |\n| a | b |\n\n\n\n",
        ),
        # docfx
        ("# [Linux](#tab/linux)\n\nx", "Linux\n\nx"),
        (':::image type="content" source="a.png" alt-text="A berth":::', "A berth"),
        (':::row:::\n:::column span="2":::\nx\n:::column-end:::', "\n\nx\n"),
        ('> [!div class="checklist"]\n> * x\n\n[!VIDEO https://x.org]', "> \n> * x\n\n"),
        # MyST
        ("See {ref}`berths` and `{x}`", "See `berths` and `{x}`"),
        ("% hidden\nx", "\nx"),
        ('x\n\n+++ {"a": 1}\n\ny', "x\n\n\n\ny"),
        ("```{note}\n:class: wide\nA [b](c.md) <i>d</i>.\n```\nx", "Note\n\nA [b](c.md) d.\n\nx"),
        ("```{admonition} Mind\n<b>x</b> `<b>`\n```", "Mind\nx `<b>`\n"),
        ("````{tab-set}\n```{tab-item} Mac\nx\n```\n````", "\nMac\nx\n\n"),
        ("```{figure} a.png\n:alt: A crane\n\nLifts.\n```", "A crane\n\n\nLifts.\n"),
        (":::{admonition} Mind\n:name: x\ny\n:::", "Mind\n\ny\n"),
        ("```{toctree}\n:maxdepth: 2\n\na\n```\nx", "\n\n\n\n\nx"),
        ("```{code-cell} python\n:tags: [hide]\nx = 1\n```", "```{code-cell} python\n\nx = 1\n```"),
        ("```{versionadded} 1.2\n```", "Versionadded 1.2\n"),
        # Quarto and Pandoc
        ("::: {.callout-note}\n## Mind\nx\n:::", "Mind\n\nx\n"),
        ('::: {.callout-tip title="Mind" collapse=true}\nx\n:::', "Mind\nx\n"),
        ("::: {.callout-tip collapse=true}\nx\n:::", "Tip\nx\n"),
        ("::: {.panel-tabset}\n## Mac\nx\n:::\n\n## End", "\nMac\nx\n\n\n## End"),
        (":::: columns\n::: {.column width=40%}\nx\n:::\n::::", "\n\nx\n\n"),
        ("```{r}\n#| echo: false\n#| fig-cap: Tides\nplot(1)\n```", "```{r}\nTides\n\nplot(1)\n```"),
        ("# End {-}", "# End"),
        (": Tides {#tbl:tides}", ": Tides "),
        # kramdown
        ("* This is replaced\n{:toc}\n\nx", "\n\n\nx"),
        ("{::comment}\nhidden\n{:/comment}\nx", "\n\n\nx"),
        # Logseq
        (
            "- x\n  id:: 64b0c3c4-1111\n  cost:: 3\n- ((64b0c3c4-1111-2222-3333-444455556666)) y",
            "- x\n\n  cost:: 3\n-  y",
        ),
        ("- x\n  id:: 1\n  :LOGBOOK:\n  CLOCK: 1\n  :END:\n- y", "- x\n\n\n\n\n- y"),
        (
            "- #+BEGIN_NOTE\n  x\n  #+END_NOTE\n- #+BEGIN_QUERY\n  {:query (task TODO)}\n  #+END_QUERY\n- y",
            "- \n  x\n  \n- \n\n\n- y",
        ),
        # others
        ("<!--@include: ./parts/a.md{3,}-->\nx", "./parts/a.md\nx"),
        ("a {{< comment >}}hidden {{ x }}{{< /comment >}} b {{ comment.text }} c/}", "a  b  c/}"),
        ("{%- comment -%}\nhidden\n{%- endcomment -%}x", "\n\nx"),
        ("```base\nviews: []\n```\nx", "\n\n\nx"),
        ("`<br>`{=html} and [[_TOSP_]]", "`<br>` and [[_TOSP_]]"),
        ("[[_TOSP_]]\nx", "\nx"),
        ("a {>>hidden<<}{--old--}{~~old~>new~~} b", "a new b"),
        ("a <% tp.date %> b", "a  b"),
        ('<ac:structured-macro ac:name="info"><ac:rich-text-body>x</ac:rich-text-body></ac:structured-macro>', "x"),
        ("/// note | Mind\nx\n///", "Mind\nx\n"),
        ("/// warning\nx\n///", "Warning\nx\n"),
        ('{{HTMLElement(\'video\')}}, {{jsxref("Array.of()", "of()")}}{{Compat}}', "video, of()"),
        ('{{< tab name="Bash" >}}x{{< /tab >}}', "Bashx"),
        ('{% admonition type="info" name="Mind" %}x{% /admonition %}', "Mindx"),
        ('<ParamField path="berth" type="string">\n\nx\n\n</ParamField>', "berth string \n\nx\n\n"),
        ("::: package.Module\n    options:\n      show: true\n\nx", "package.Module\n\n\n\nx"),
        ("{{#playground a.rs editable}}", "a.rs"),
        ('<Tooltip tip="Mind">x</Tooltip>', "Mind x"),
        ("x\n\n---\nlayout: center\nclass: wide\n---\n\n# Two\n\n::right::\n\ny", "x\n\n\n\n\n\n\n# Two\n\n\n\ny"),
        ("{% highlight sh %}\n# x {{ y }}\n  <b>\n{% endhighlight %}\nz", "````sh\n# x {{ y }}\n  <b>\n````\nz"),
        ('{{< highlight go "linenos=table" >}}\n# x\n{{< /highlight >}}', "````go\n# x\n````"),
        ("{% codeblock lang:js %}\nimport a from 'b'\n{% endcodeblock %}", "````js\nimport a from 'b'\n````"),
        ("$x^{{2}} + {--y--}$ and $$\n{{a}}\n$$ and $5 {{ x }} $6", "$x^{{2}} + {--y--}$ and $$\n{{a}}\n$$ and $5  $6"),
        ('%% kanban:settings\n```\n{"a": 1}\n```\n%%\nx', "\n\n\n\n\nx"),
        ("```rust\n# fn main() {\n#[a]\nx();\n# }\n```", "```rust\n\n#[a]\nx();\n\n```"),
    ],
)
def test_visible_text_of_a_construct(written: str, text: str) -> None:
    assert visible(written).text == text


@pytest.mark.parametrize(
    "written",
    [
        "a `<b>` and `{{ x }}` and `%% y %%`",
        "```html\n<div hidden>{{ x }}</div>\n<!-- shown -->\n```",
        "    <p>indented code</p>",
        "<https://example.org> and a < b",
        "use the <script> tag"[:7] + "`<script>` tag",
        "C:\\temp%d and 100% or 50%",
        "[x](<a b.md>)",
        "[note]: <page.md> (a title)",
        r"$\sum_{c=1}^{M}$",
        "50 % of all, `{id}` and /users/{id}_x and https://x.org///y",
        "```python\n# a comment\nx = 1\n```",
        "- ```{note}\n  in a list\n  ```",
        "Note: this\nis text.",
    ],
)
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
