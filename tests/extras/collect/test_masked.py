from __future__ import annotations

from hypothesis import given, strategies as st

from ragbench.benchmark.phrases import Finder
from ragbench.corpus.reader import parse_document
from ragbench.extras.collect.masked import Masks


def document(text: str, docno: str = "a"):
    return parse_document(docno, f"{docno}.md", text.encode(), 0.0)[0]


def test_mask_keeps_sections_and_lines() -> None:
    text = "# Locks\n\nA lock keeps a *door\nshut for good*. It clicks.\n\n## How do I open it?\n\nTurn the key.\n"
    old = document(text)
    (new,) = Masks.of([("A lock keeps a door shut for good", ()), ("How do I open it", ["a"])])([old])
    assert new.text == "# Locks\n\n\u2026\n. It clicks.\n\n## \u2026?\n\nTurn the key.\n"
    assert new.text.count("\n") == old.text.count("\n")
    assert [section.anchor for section in new.sections] == ["locks", "locks/section"]
    assert new.digest != old.digest and new.path == old.path and new.modified == old.modified


def test_mask_keeps_a_lead_that_is_not_text() -> None:
    old = document('{{% include "info.md" %}}\n\n## Settings\n\nA lock keeps a door shut for good.\n')
    (new,) = Masks.of([("A lock keeps a door shut for good", ())])([old])
    assert [section.anchor for section in new.sections] == [section.anchor for section in old.sections]
    assert [section.level for section in new.sections] == [0, 2]


def test_mask_removes_passage_from_frontmatter() -> None:
    old = document(
        "---\ntitle: Locks\ndescription: Everything about locks and keys and doors\n"
        "aliases: [Door locks, Bolts]\nnote: {more: 'everything about locks and keys and doors, and bolts'}\n"
        "---\ntext\n"
    )
    (new,) = Masks.of([("Everything about locks and keys and doors", ()), ("door locks", ["a"])])([old])
    assert dict(new.frontmatter) == {"title": "Locks", "aliases": ["Bolts"], "note": {"more": ", and bolts"}}


def test_mask_of_short_passage_spares_other_documents() -> None:
    documents = [document("The door locks.", "a"), document("The door locks.", "b")]
    masked = Masks.of([("door locks", ["a"])])(documents)
    assert [page.text for page in masked] == ["The \u2026.", "The door locks."]
    assert masked[1] is documents[1]


def test_mask_keeps_targets_of_links() -> None:
    from dataclasses import replace

    old = document("See [[b]]. One two three four five [[c]].")
    old = replace(old, links=tuple(replace(link, target=f"to/{link.text}") for link in old.links))
    (new,) = Masks.of([("One two three four five c", ())])([old])
    assert [(link.text, link.target) for link in new.links] == [("b", "to/b")]


def test_unmasked_names_document_and_field() -> None:
    masks = Masks.of([("one two three four five", ())])
    holding = document("---\ntitle: One two three four five\n---\nSix, one two three four five.\n")
    assert [field for _, field in masks.unmasked([holding, document("six")])] == ["title", "text", "frontmatter"]


@given(st.text(alphabet="ab \n#*`.-", max_size=80), st.lists(st.sampled_from("ab"), min_size=1, max_size=3))
def test_mask_leaves_no_passage_within_a_paragraph(text: str, passage: list[str]) -> None:
    masks = Masks.of([(" ".join(passage), ["a"])])
    (masked,) = masks([document(text)])
    assert masked.text not in Finder([tuple(passage)])
    assert masked.text.count("\n") == document(text).text.count("\n")
