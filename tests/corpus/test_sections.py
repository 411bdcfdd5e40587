"""Sections, slugs and anchors."""

import pytest
from hypothesis import given, strategies as st

from ragbench.base.types import Section
from ragbench.corpus.markdown import parse_markdown
from ragbench.corpus.reader import parse_document
from ragbench.corpus.sections import build_sections, section_id, slug
from ragbench.index.spans import body_start, is_under, parent_anchor
from tests.tables import rows


def sections(text: str) -> tuple[Section, ...]:
    return build_sections(text, parse_markdown(text).headings)


@pytest.mark.parametrize(("heading", "expected"), rows("corpus_sections", "slug"))
def test_slug(heading: str, expected: str) -> None:
    assert slug(heading) == expected


@given(st.text())
def test_slug_is_a_name(heading: str) -> None:
    name = slug(heading)
    assert name
    assert not any(c.isspace() or c in "/#" for c in name)


def test_sections_tile_the_text_and_begin_with_their_heading() -> None:
    text = "Before.\n\n# A\n\none\n\n## B\ntwo\n\nC\n---\nthree\n"
    parts = sections(text)
    assert [(s.number, s.level, s.path, s.anchor) for s in parts] == [
        (0, 0, (), ""),
        (1, 1, ("A",), "a"),
        (2, 2, ("A", "B"), "a/b"),
        (3, 2, ("A", "C"), "a/c"),
    ]
    assert [text[s.start : s.end] for s in parts] == [
        "Before.\n\n",
        "# A\n\none\n\n",
        "## B\ntwo\n\n",
        "C\n---\nthree\n",
    ]


def test_sections_begin_after_a_blank_beginning() -> None:
    assert [(s.number, s.start) for s in sections("\n \n# A\n")] == [(0, 3)]


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_blank_text_has_no_sections(text: str) -> None:
    assert sections(text) == ()


def test_sections_may_skip_levels() -> None:
    assert [s.path for s in sections("# A\n#### D\n## B\n### C\n# E\n")] == [
        ("A",), ("A", "D"), ("A", "B"), ("A", "B", "C"), ("E",),
    ]  # fmt: skip


def test_sections_number_repeated_headings_of_one_parent() -> None:
    text = "# A\n## Limits\n## Limits\n### X\n## Limits\n# B\n## Limits\n### X\n"
    assert [s.anchor for s in sections(text)] == [
        "a", "a/limits", "a/limits-1", "a/limits-1/x", "a/limits-2", "b", "b/limits", "b/limits/x",
    ]  # fmt: skip


def test_sections_skip_a_number_already_taken() -> None:
    assert [s.anchor for s in sections("# Foo 1\n# Foo\n# Foo\n# Foo\n")] == ["foo-1", "foo", "foo-2", "foo-3"]
    assert [s.anchor for s in sections("# Foo\n# Foo\n# Foo 1\n")] == ["foo", "foo-1", "foo-1-1"]


def test_section_id() -> None:
    document, _ = parse_document("gate/api-keys", "gate/api-keys.md", b"Intro\n\n# Keys\n\n## Rotate a key\n", 0.0)
    assert [section_id(document, section) for section in document.sections] == [
        "gate/api-keys#",
        "gate/api-keys#keys",
        "gate/api-keys#keys/rotate-a-key",
    ]


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("# A\n\nText", "Text"),
        ("## A ##\nText", "Text"),
        ("  # A\n    indented", "indented"),
        ("A\nstill A\n===\n\nText", "Text"),
        ("#\nText", "Text"),
        ("# A", ""),
        ("#hashtag\n===\nText", "Text"),
        ("# A\n---\nText", "---\nText"),
    ],
)
def test_section_body_start(text: str, body: str) -> None:
    (section,) = sections(text)
    assert text[body_start(text, section) :] == body


def test_body_of_a_section_without_a_heading_is_all_of_it() -> None:
    assert body_start("Text\n", sections("Text\n")[0]) == 0


def test_sections_lie_under_their_parents() -> None:
    a, b, c = sections("# A\n## B\n# AB\n")
    assert [parent_anchor(s) for s in (a, b, c)] == ["", "a", ""]
    assert is_under(b, a.anchor)
    assert not is_under(c, a.anchor)
    assert not is_under(a, a.anchor)
    assert is_under(c, "")


def test_ids_in_headings_without_text_are_those_of_the_heading() -> None:
    page, _ = parse_document("a", "a.md", b"# A {#one}\n\n## B <a id='two'></a>\n\n<a id='three'></a>\n\n## C\n", 0.0)
    assert [section.ids for section in page.sections] == [("one",), ("two",), ("three",)]
