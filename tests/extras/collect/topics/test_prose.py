from __future__ import annotations

from ragbench.extras.collect.topics.candidates import sentences

TEXT = """# Keys

Keys open doors. A key, e.g. Bob's, is *never* lent! See [the safe](../safe.md "where") and [[vault|our vault]].
Is it
long? yes.

- Read [about locks][locks] first.
- 鍵は一つです。錠は二つです。

| a | table. |
|---|--------|
| b | Not this. |

```
Nor this. At all.
```

[locks]: locks.md
"""


def test_sentences_come_from_paragraphs_and_items() -> None:
    assert [sentence.text for sentence in sentences(TEXT)] == [
        "Keys open doors.",
        "A key, e.g. Bob's, is never lent!",
        "See the safe and our vault.",
        "Is it long? yes.",
        "Read about locks first.",
        "鍵は一つです。",
        "錠は二つです。",
    ]


def test_links_are_named_as_they_are_shown() -> None:
    links = [(link.kind, link.text, shown) for sentence in sentences(TEXT) for link, shown in sentence.links]
    assert links == [
        ("markdown", "../safe.md", "the safe"),
        ("wikilink", "vault|our vault", "our vault"),
        ("markdown", "locks.md", "about locks"),
    ]


def test_sentence_is_kept_as_written() -> None:
    raw = [sentence.raw for sentence in sentences(TEXT)]
    assert raw[1] == "A key, e.g. Bob's, is *never* lent!"
    assert raw[3] == "Is it\nlong? yes."


def test_admonition_lines_belong_to_no_sentence() -> None:
    text = ":::note\nWhile a *server* runs, wait.\n:::\n\n::: tip Pre-built\n\nTake one\n\n:::\n\nUse `:::` here"
    assert [sentence.text for sentence in sentences(text)] == ["While a server runs, wait.", "Take one", "Use ::: here"]
