"""Frontmatter: found, parsed, and never fatal."""

import datetime

import pytest

from ragbench.corpus.reader import _split_frontmatter
from tests.tables import rows


def problem(text: str) -> str | None:
    frontmatter = _split_frontmatter(text)
    return frontmatter.problem[0] if frontmatter.problem else None


def test_frontmatter_fields_and_body() -> None:
    text = "---\ntitle: Keys\ntags: [a, b]\n---\n# Keys\n"
    frontmatter = _split_frontmatter(text)
    assert frontmatter.fields == {"title": "Keys", "tags": ["a", "b"]}
    assert text[frontmatter.body :] == "# Keys\n"
    assert frontmatter.problem is None


@pytest.mark.parametrize("text", ["---\n---\nText", "---\n# a comment\n---\nText", "---  \n\n...\nText"])
def test_empty_frontmatter_is_cut_off(text: str) -> None:
    frontmatter = _split_frontmatter(text)
    assert (frontmatter.fields, text[frontmatter.body :], frontmatter.problem) == ({}, "Text", None)


def test_frontmatter_closing_line_may_be_the_last_of_the_file() -> None:
    assert _split_frontmatter("---\na: 1\n---").fields == {"a": 1}


@pytest.mark.parametrize("text", ["# A\n---\na: 1\n---\n", "----\na: 1\n---\n", "", "---"])
def test_frontmatter_opens_on_the_first_line_with_text_only(text: str) -> None:
    frontmatter = _split_frontmatter(text)
    assert (frontmatter.fields, frontmatter.body, frontmatter.problem) == ({}, 0, None)


def test_frontmatter_is_not_a_rule_at_the_top() -> None:
    assert problem("---\n\nProse after a rule, never closed.\n") is None


def test_unclosed_frontmatter_stays_in_the_body() -> None:
    frontmatter = _split_frontmatter("---\ntitle: Keys\n\n# Keys\n")
    assert (frontmatter.fields, frontmatter.body) == ({}, 0)
    assert frontmatter.problem == (
        "frontmatter-unclosed",
        "the frontmatter opened in line 1 is never closed; add a line `---`.",
    )


def test_frontmatter_names_the_line_of_malformed_yaml() -> None:
    text = "---\ntitle: Keys\nsummary: one: two\n---\nText"
    frontmatter = _split_frontmatter(text)
    assert text[frontmatter.body :] == "Text"
    assert frontmatter.problem == (
        "frontmatter-malformed",
        "line 3: mapping values are not allowed in this context; correct the YAML.",
    )


def test_frontmatter_may_follow_blank_lines() -> None:
    text = "\n\n---\ntitle: Keys\n---\nText"
    frontmatter = _split_frontmatter(text)
    assert (frontmatter.fields, text[frontmatter.body :]) == ({"title": "Keys"}, "Text")


def test_frontmatter_with_an_error_still_says_that_a_page_is_a_draft() -> None:
    text = "---\ntitle: Berths: the guide\ntags:\n\t- sea\ndraft: true\nlinks: [a\n---\nText"
    assert _split_frontmatter(text).fields == {
        "title": "Berths: the guide",
        "tags": ["sea"],
        "draft": True,
        "links": "[a",
    }
    assert _split_frontmatter(text.replace("draft: true\n", "")).fields == {}


@pytest.mark.parametrize("yaml", ["- a\n- b", "Just a sentence", "42"])
def test_frontmatter_that_is_no_mapping_stays_in_the_body(yaml: str) -> None:
    frontmatter = _split_frontmatter(f"---\n{yaml}\n---\nText")
    assert (frontmatter.fields, frontmatter.body) == ({}, 0)
    assert frontmatter.problem is not None
    assert "not a mapping" in frontmatter.problem[1]


@pytest.mark.parametrize(
    "yaml",
    [
        *rows("corpus_frontmatter", "frontmatter_refuses_hostile_yaml"),
        "a: " + "9" * 5000,
        "a: 0x" + "f" * 5000,
        "a: " + "[" * 1900 + "]" * 1900,
        "a: " + "[" * 200_000 + "]" * 200_000,
        "- " * 3_000,
    ],
)
def test_frontmatter_refuses_hostile_yaml(yaml: str) -> None:
    assert problem(f"---\n{yaml}\n---\nText") == "frontmatter-malformed"


def test_frontmatter_that_is_long_is_not_parsed() -> None:
    frontmatter = _split_frontmatter(f"---\n{'key: value' * 7_000}\n---\ntext")
    assert frontmatter.problem == (
        "frontmatter-malformed",
        "the frontmatter is longer than 65,536 characters; correct the YAML.",
    )


def test_frontmatter_refuses_aliases_that_multiply() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]" for a, b in zip("abcdef", "bcdefg", strict=True)
    ]
    assert problem("---\n" + "\n".join(lines) + "\n---\n") == "frontmatter-malformed"


def test_frontmatter_values_are_plain() -> None:
    yaml = "2026: year\nnull: none\nset: !!set {y, x}\nbinary: !!binary aGk=\npairs: !!omap [k: 1]\nday: 2026-01-05\n"
    assert _split_frontmatter(f"---\n{yaml}---\n").fields == {
        "2026": "year",
        "None": "none",
        "set": ["x", "y"],
        "binary": "hi",
        "pairs": [["k", 1]],
        "day": datetime.date(2026, 1, 5),
    }


def test_frontmatter_replaces_escapes_that_no_file_can_hold() -> None:
    # Long enough for the loader in Python, which lets \ud800 through.
    yaml = 'a: "x\\0y"\n' + "# filler\n" * 500 + 'b: "\\ud800"\n'
    assert _split_frontmatter(f"---\n{yaml}---\n").fields == {"a": "x\ufffdy", "b": "\ufffd"}


def test_frontmatter_both_loaders_agree() -> None:
    yaml = "title: Keys\ndate: 2026-01-05 10:00:00\ntags: [a, b]\nnested: {x: [1, 2.5, true, null]}\n"
    short = _split_frontmatter(f"---\n{yaml}---\n")
    long = _split_frontmatter(f"---\n{yaml}{'# filler' * 1000}\n---\n")
    assert short.fields == long.fields
