"""Headings, code blocks, links and tags as CommonMark sees them."""

import time

import pytest

from ragbench.base.types import Link
from ragbench.corpus.markdown import parse_markdown
from tests.tables import rows


def headings(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.text) for heading in parse_markdown(text).headings]


def links(text: str) -> list[tuple[str, str, str | None]]:
    return [(link.kind, link.text, link.heading) for link in parse_markdown(text).links]


def test_markdown_atx_and_setext_headings() -> None:
    text = "# One\n\nTwo\n===\n\nThree\nlines\n---\n\n###### Six ######\n####### Seven\n#No\n"
    assert headings(text) == [(1, "One"), (1, "Two"), (2, "Three lines"), (6, "Six")]
    assert [text[heading.start :].split("\n")[0] for heading in parse_markdown(text).headings] == [
        "# One", "Two", "Three", "###### Six ######",
    ]  # fmt: skip


@pytest.mark.parametrize("text", rows("corpus_markdown", "markdown_ignores_what_is_no_heading"))
def test_markdown_ignores_what_is_no_heading(text: str) -> None:
    assert headings(text) == []


def test_markdown_html_block_ends_at_a_blank_line() -> None:
    assert headings("<div>\n\n# A\n\n</div>\n") == [(1, "A")]


@pytest.mark.parametrize(
    ("markdown", "text"),
    rows("corpus_markdown", "markdown_heading_text_is_what_a_reader_sees"),
)
def test_markdown_heading_text_is_what_a_reader_sees(markdown: str, text: str) -> None:
    assert headings(f"## {markdown}\n") == [(2, text)]


def test_markdown_code_block_with_language_lines_and_offsets() -> None:
    text = 'Intro\n\n```Python title="x"\ndef f():\n\n    return 1\n```\nAfter\n'
    (block,) = parse_markdown(text, first_line=5).code_blocks
    assert (block.number, block.language, block.code) == (0, "python", "def f():\n\n    return 1\n")
    assert (block.start_line, block.end_line) == (7, 11)
    assert text[block.start : block.end] == '```Python title="x"\ndef f():\n\n    return 1\n```'


@pytest.mark.parametrize(
    ("info", "language"),
    [
        ("C++", "c++"), ("c#", "c#"), ("go-html-template {file=a}", "go-html-template"), ("{python}", "python"),
        ("{.rust .numberLines}", "rust"), ("js{1,3}", "js"), ("python:main.py", "python"), ("", ""), ("  SH  ", "sh"),
    ],
)  # fmt: skip
def test_markdown_languages(info: str, language: str) -> None:
    assert [block.language for block in parse_markdown(f"```{info}\nx\n```\n").code_blocks] == [language]


def test_markdown_nested_and_tilde_fences_are_code_blocks() -> None:
    text = "- item\n\n  ~~~sh\n  ls\n  ~~~\n\n> ```\n> quoted\n> ```\n\n````\n```\ninner\n```\n````\n"
    blocks = parse_markdown(text).code_blocks
    assert [block.code for block in blocks] == ["ls\n", "quoted\n", "```\ninner\n```\n"]
    assert [(block.start_line, block.end_line) for block in blocks] == [(3, 5), (7, 9), (11, 15)]
    assert parse_markdown(text).unclosed == ()


def test_markdown_indented_code_is_no_code_block() -> None:
    assert parse_markdown("Text\n\n    indented()\n").code_blocks == ()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("```\na\n", (1,)),
        ("```", (1,)),
        ("a\n\n~~~\nb\n```\n", (3,)),
        ("````\na\n```\n", (1,)),
        ("```\na\n    ```\n", (1,)),
        ("- ```\n  a\n\nb\n\n```\nc\n```\n", (1,)),
        ("> ```\n> a\n\ntext\n", (1,)),
        ("```\n\n\n", (1,)),
        ("```\na\n```", ()),
        ("```\n```", ()),
        ("> ```\n> a\n> ```  \n", ()),
        ("   ```\n   a\n  ```\n", ()),
    ],
)
def test_markdown_unclosed_fences_are_named_by_line(text: str, lines: tuple[int, ...]) -> None:
    assert parse_markdown(text).unclosed == lines


def test_markdown_wikilinks_and_transclusions() -> None:
    assert links("[[gate/tokens]] [[a|b]] [[a#Rotate a key]] [[a#h|b]] ![[_shared/x]] ![[p.png]]") == [
        ("wikilink", "gate/tokens", None),
        ("wikilink", "a|b", None),
        ("wikilink", "a#Rotate a key", "Rotate a key"),
        ("wikilink", "a#h|b", "h"),
        ("transclusion", "_shared/x", None),
        ("transclusion", "p.png", None),
    ]


def test_markdown_wikilink_in_a_table_escapes_its_bar() -> None:
    assert links("| a | b |\n|---|---|\n| [[x\\|y]] | z |\n") == [("wikilink", "x|y", None)]
    assert links("See [[x\\|y]] there")[0][1] == "x\\|y"


def test_markdown_links() -> None:
    text = "[a](../store/x.md) [b](<with blank.md>) [c](x.md#part 'title') [d][ref] [e *f*](g.md?h)\n\n[ref]: r.md\n"
    assert links(text) == [
        ("markdown", "../store/x.md", None),
        ("markdown", "with blank.md", None),
        ("markdown", "x.md#part", "part"),
        ("markdown", "r.md", None),
        ("markdown", "g.md?h", None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "`[[a]]` and ``[b](c.md)``",
        "```\n[[a]] [b](c.md) #tag\n```\n",
        "    [[a]]\n",
        "<div>\n[[a]] #tag\n</div>\n",
        "[x](https://example.org/a.md) [y](mailto:a@b.c) [z](//host/a) <https://example.org>",
        "[own](#part) [[#Own part]] [[ ]] []() [[]]",
        "![image](a.png)",
        r"\[[a\]\] \[b\](c.md)",
    ],
)
def test_markdown_ignores_what_is_no_link_to_a_document(text: str) -> None:
    assert parse_markdown(text).links == ()


def test_markdown_links_in_headings_lists_quotations_and_tables_count() -> None:
    text = "# [[a]]\n\n- [[b]]\n\n> [[c]]\n\n| x |\n|---|\n| [[d]] |\n"
    assert [link.text for link in parse_markdown(text).links] == ["a", "b", "c", "d"]


def test_markdown_links_have_no_target_yet() -> None:
    assert parse_markdown("[[a]]").links == (Link("wikilink", "a", None, None),)


def test_markdown_links_of_a_paragraph_take_linear_time() -> None:
    seconds = []
    for count in (2_000, 8_000):
        text = " ".join(f"[{number}](page.md)" for number in range(count))
        taken = []
        for _ in range(3):  # the least of three: other work on the machine only adds to it
            begun = time.process_time()
            assert len(parse_markdown(text).links) == count
            taken.append(time.process_time() - begun)
        seconds.append(min(taken))
    assert seconds[1] < 10 * seconds[0]  # quadratic: 16


def test_markdown_hashtags() -> None:
    text = "#oncall and #auth/tokens, (#x-1) **#bold** #späť.\n\n- #listed\n"
    assert parse_markdown(text).tags == ("oncall", "auth/tokens", "x-1", "bold", "späť", "listed")


@pytest.mark.parametrize(
    "text",
    [
        "C# and F#x and page#part", "issue #42 and #1_000", "# Heading", "`#code`", r"\#escaped", "https://x.org/#y",
        "[a](b.md#c)", "# A {#own-id}", "&#35;x", '"#ffffff"', "[[a#b]]",
    ],
)  # fmt: skip
def test_markdown_ignores_what_is_no_hashtag(text: str) -> None:
    assert parse_markdown(text).tags == ()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "[a](" * 8_000,
        "*a_ " * 8_000,
        "> " * 8_000,
        "- " * 4_000,
        "`a``b" * 5_000,
        "![[" * 8_000,
        "#a" * 9_000,
    ],
)
def test_markdown_hostile_text_is_parsed(text: str) -> None:
    # Quadratic work would take minutes here.
    assert parse_markdown(text).code_blocks == ()


@pytest.mark.parametrize(
    "written",
    [
        "## Limits {#limits}",
        "## Limits { #limits }",
        "## Limits {: #limits .wide }",
        "## Limits ## {: #limits }",
        "## Limits {.wide}",
        "## Limits {/* #limits */}",
        "## Limits ##",
    ],
)
def test_markdown_attributes_of_headings_are_no_text_and_no_tags(written: str) -> None:
    assert headings(written) == [(2, "Limits")]
    assert parse_markdown(written).tags == ()


def test_markdown_braces_of_a_heading_that_are_text() -> None:
    assert headings("## Maps `{}` and {name}") == [(2, "Maps {} and {name}")]
    assert parse_markdown("{a} #one {b #two} #three").tags == ("one", "three")


MKDOCS = """\
=== "One"

    Read [a](a.md).

    ```sh
    run
    ```

    !!! note "Title"
        # No section

        See [b](b.md).

=== "Two"
    [c](c.md)
??? tip
    [d](d.md)

    [e](e.md)
"""


def test_indented_blocks_of_mkdocs_hold_markdown() -> None:
    markup = parse_markdown(MKDOCS + "\n    [code](f.md)\n\n## After\n")
    assert [link.text for link in markup.links] == ["a.md", "b.md", "c.md", "d.md", "e.md", "f.md"]
    assert [heading.text for heading in markup.headings] == ["After"]
    (block,) = markup.code_blocks
    assert (block.code, block.start_line, block.end_line) == ("run\n", 5, 7)


@pytest.mark.parametrize("text", ["Title\n===\n", "=== x\n\nText [a](a.md)\n", "!!! \n\n    [a](a.md)\n"])
def test_markdown_ignores_what_looks_like_a_block_of_mkdocs(text: str) -> None:
    plain = parse_markdown(text)
    assert [link.text for link in plain.links] == (["a.md"] if "=== x" in text else [])


def test_components_hold_markdown() -> None:
    text = "<Note>\nSee [a](a.md).\n```sh\nrun\n\nrun\n```\n</Note>\n\n<DIV>\n[b](b.md)\n</DIV>\n"
    markup = parse_markdown(text)
    assert [link.text for link in markup.links] == ["a.md"]
    assert [block.code for block in markup.code_blocks] == ["run\n\nrun\n"]


def test_markdown_indentation_makes_no_code_in_mdx() -> None:
    inside = "    See [a](a.md).\n\n    ```sh\n    run\n    ```\n\n    # No section\n"
    text = f"<Steps>\n  <Step>\n\n{inside}  </Step>\n</Steps>\n"
    assert parse_markdown(text).links == ()
    markup = parse_markdown(text, mdx=True)
    assert [link.text for link in markup.links] == ["a.md"]
    assert [block.code for block in markup.code_blocks] == ["run\n"]
    assert markup.headings == ()
