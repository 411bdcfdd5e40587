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


def candidates_of(documents, kind):
    return [
        (candidate.docno, candidate.target, candidate.text, candidate.masked)
        for candidate in candidates(documents, (kind,))
    ]


def test_description_gives_first_sentence_and_masks_whole(documents) -> None:
    whole = "How to make a key, and take it back. Also for robots."
    assert candidates_of(documents, "description") == [("keys", "keys", "How to make a key, and take it back", whole)]


def test_aliases_that_are_addresses_are_no_queries(documents) -> None:
    assert candidates_of(documents, "alias") == [("keys", "keys", "access keys", "access keys")]


def test_question_is_answered_by_section_below(documents) -> None:
    title = "Who may make one?"
    assert candidates_of(documents, "question") == [("keys", "keys#api-keys/who-may-make-one", title, title)]


def test_link_gives_sentence_without_name_of_target(documents) -> None:
    assert [(docno, text) for docno, _, text, _ in candidates_of(documents, "link")] == [
        ("keys", ""),
        ("keys", "explains who may make one"),
        ("keys", "To hide a thing from robots and from us"),
    ]
    assert candidates_of(documents, "link")[1][3] == "[[keys]] explains who may make one."


def test_first_sentence_has_words_of_its_own(documents) -> None:
    assert [(docno, text) for docno, _, text, _ in candidates_of(documents, "first_sentence")] == [
        ("keys", "Robots need keys too"),
        ("safe", "For robots, see API keys"),
    ]


def test_query_is_one_line_without_marks() -> None:
    assert query("[!WARNING]- Keys:\n {{% note %}} *no*  doors...") == "Keys: *no* doors"
    assert query(":octicons-key-24: Make `std::key:` at 10:30:00") == "Make `std::key:` at 10:30:00"
    assert query("[Since version 2]") == ""


def test_first_sentence_is_visible_to_readers() -> None:
    unseen = b"import Tabs from './tabs'\n\n{/* Draft. */}\n\n[Since version 2]\n<br/>\n\n"
    (document, _) = parse_document("a", "a.mdx", unseen + b"<Note>\nKeys *open* doors.\n</Note>\n", 0.0)
    assert [candidate.text for candidate in candidates([document], ["first_sentence"])] == ["Keys open doors"]


def test_kinds_all_have_a_source(documents) -> None:
    assert {candidate.kind for candidate in candidates(documents)} == set(KINDS)


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
                ("a permission denied error on start", "If you get a permission denied error on start, run as root."),
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
def test_question_kinds_give_their_candidates(tmp_path: Path, kind, expected) -> None:
    (tmp_path / "install.md").write_text(ASKED, encoding="utf-8")
    assert [(text, masked) for *_, text, masked in candidates_of(read_vault(tmp_path).documents, kind)] == expected
