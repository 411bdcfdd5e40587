from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.corpus.reader import parse_document, read_vault
from ragbench.extras.collect.topics.candidates import KINDS, candidates, query

KEYS = """---
title: API keys
description: How to make a key, and take it back. Also for robots.
aliases: [access keys, /old/address/]
---
# API keys

{{< new-in 2.0 >}}

> [!NOTE]
> Robots need keys *too*.

## Who may make one?

Anybody with a badge.

## Nobody asks?

## Where

In the safe.
"""
SAFE = """# Safe

For robots, see [API keys](keys.md).
[[keys]] explains who may make one.
A key is a word that opens the [door](keys.md) for you.
Every [robot](https://example.org) has one. [Elsewhere](nowhere.md) it does not.
To hide a thing from robots and from us: [API keys](keys.md).
"""


@pytest.fixture
def documents(tmp_path: Path):
    (tmp_path / "keys.md").write_text(KEYS, encoding="utf-8")
    (tmp_path / "safe.md").write_text(SAFE, encoding="utf-8")
    return read_vault(tmp_path).documents


def found(documents, kind):
    return [(each.docno, each.target, each.text, each.masked) for each in candidates(documents, (kind,))]


def test_a_description_gives_its_first_sentence_and_is_masked_whole(documents) -> None:
    whole = "How to make a key, and take it back. Also for robots."
    assert found(documents, "description") == [("keys", "keys", "How to make a key, and take it back", whole)]


def test_aliases_that_are_addresses_are_no_queries(documents) -> None:
    assert found(documents, "alias") == [("keys", "keys", "access keys", "access keys")]


def test_a_question_is_answered_by_the_section_below_it(documents) -> None:
    title = "Who may make one?"
    assert found(documents, "question") == [("keys", "keys#api-keys/who-may-make-one", title, title)]


def test_a_link_gives_the_sentence_that_begins_or_ends_with_it_without_the_name_of_its_target(documents) -> None:
    assert [(docno, text) for docno, _, text, _ in found(documents, "link")] == [
        ("keys", ""),
        ("keys", "explains who may make one"),
        ("keys", "To hide a thing from robots and from us"),
    ]
    assert found(documents, "link")[1][3] == "[[keys]] explains who may make one."


def test_the_first_sentence_is_the_first_with_words_of_its_own(documents) -> None:
    assert [(docno, text) for docno, _, text, _ in found(documents, "first_sentence")] == [
        ("keys", "Robots need keys too"),
        ("safe", "For robots, see API keys"),
    ]


def test_a_query_is_one_line_without_marks() -> None:
    assert query("[!WARNING]- Keys:\n {{% note %}} *no*  doors...") == "Keys: *no* doors"
    assert query(":octicons-key-24: Make `std::key:` at 10:30:00") == "Make `std::key:` at 10:30:00"
    assert query("[Since version 2]") == ""


def test_the_first_sentence_is_none_that_readers_do_not_see() -> None:
    unseen = b"import Tabs from './tabs'\n\n{/* Draft. */}\n\n[Since version 2]\n<br/>\n\n"
    (document, _) = parse_document("a", "a.mdx", unseen + b"<Note>\nKeys *open* doors.\n</Note>\n", 0.0)
    assert [each.text for each in candidates([document], ["first_sentence"])] == ["Keys open doors"]


def test_every_kind_is_a_source(documents) -> None:
    assert {each.kind for each in candidates(documents)} == set(KINDS)


ASKED = """# Installing

Start here. If you get a permission denied error on start, run as root.
Why does it need root? It opens a port.
When it fails, read the log. All is well.

## How to move the folder

Copy it.

## Why?

## Where keys are kept

In the safe.

```
$ start
ERROR: port 80 is taken
warnings are fine
```
"""


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            "symptom",
            [
                (
                    "a permission denied error on start",
                    "If you get a permission denied error on start, run as root.",
                ),
                ("When it fails, read the log", "When it fails, read the log."),
            ],
        ),
        ("faq", [("Why does it need root?", "Why does it need root?")]),
        (
            "how_to",
            [("How to move the folder", "How to move the folder"), ("Where keys are kept", "Where keys are kept")],
        ),
        ("message", [("ERROR: port 80 is taken", "ERROR: port 80 is taken")]),
    ],
)
def test_what_reads_like_a_question_or_a_failure(tmp_path: Path, kind, expected) -> None:
    (tmp_path / "install.md").write_text(ASKED, encoding="utf-8")
    assert [(text, masked) for *_, text, masked in found(read_vault(tmp_path).documents, kind)] == expected
