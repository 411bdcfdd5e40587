"""Chunks along the headings, and parents with their children (P13)."""

from itertools import pairwise

import pytest

from ragbench.base.types import Chunk, ConfigError, Document
from ragbench.corpus.reader import parse_document
from ragbench.index.chunking import HeaderChunker, ParentChildChunker
from tests.naming import naming


def document(text: str, docno: str = "gate/keys") -> Document:
    return parse_document(docno, f"{docno}.md", text.encode(), 0.0)[0]


def chunk(text: str, least: int = 200, most: int = 1500, overlap: int = 100) -> list[Chunk]:
    return HeaderChunker(least, most, overlap).chunk(document(text))


def sentences(count: int, word: str = "word") -> str:
    """`count` sentences of 50 characters each, blank between them included."""
    return " ".join(f"Sentence {number:03d} {word} " + "x" * (34 - len(word)) + "." for number in range(count))


def test_sentences_have_the_length_that_chunking_assumes() -> None:
    assert len(sentences(2)) == 99


def test_chunker_has_the_defaults_of_the_seeds() -> None:
    header, parents = HeaderChunker(), ParentChildChunker()
    assert (header.min_chars, header.max_chars, header.overlap_chars) == (200, 1500, 100)
    assert (parents.child_min, parents.child_max, parents.child_overlap) == (400, 600, 100)
    assert (parents.parent_min, parents.parent_max, parents.parent_overlap) == (1500, 2000, 200)


@pytest.mark.parametrize("text", ["", "\n \n", "---\ntitle: A\n---\n"])
def test_chunker_makes_no_chunks_of_no_text(text: str) -> None:
    assert chunk(text) == []
    assert ParentChildChunker().chunk(document(text)) == []


def test_chunker_makes_a_section_a_chunk() -> None:
    text = f"# A\n\n{sentences(5)}\n\n## B\n\n{sentences(6)}\n"
    first, second = chunk(text)
    assert first == Chunk("gate/keys#0", "gate/keys", f"# A\n\n{sentences(5)}", ("A",), (0,), 0, 254)
    assert second.text == f"## B\n\n{sentences(6)}"
    assert (second.chunk_id, second.header_path, second.sections) == ("gate/keys#1", ("A", "B"), (1,))
    assert text[second.start : second.end] == second.text


def test_chunker_merges_small_sections_under_one_heading() -> None:
    text = "# A\n\n" + "".join(f"## B{number}\n\n{sentences(2)}\n\n" for number in range(5))
    chunks = chunk(text)
    # Each section has 108 characters, so two make 200; the fifth is left over and joins the pair before.
    assert [c.sections for c in chunks] == [(0, 1, 2), (3, 4, 5)]
    assert [c.header_path for c in chunks] == [("A",), ("A", "B2")]


def test_chunker_keeps_sections_of_different_headings_apart() -> None:
    text = f"# A\n\n## B\n\n{sentences(9)}\n\n### C\n\nShort one.\n\n## D\n\nShort two.\n\n# E\n\n{sentences(9)}\n"
    # C goes back to B that holds it; D goes back to B too, its sibling; E is the sibling of A and stands on its own.
    assert [c.sections for c in chunk(text)] == [(0, 1, 2, 3), (4,)]
    text = f"# A\n\n{sentences(9)}\n\n## B\n\n### C\n\nShort one.\n\n# E\n\n{sentences(9)}\n"
    assert [c.sections for c in chunk(text)] == [(0, 1, 2), (3,)]
    text = f"# A\n\n## B\n\n{sentences(29)}\n\n### C\n\n{sentences(1)}\n\n## D\n\n{sentences(9)}\n"
    # B with C would be too long, and D does not stand under B, so C stays alone.
    assert [c.sections for c in chunk(text)] == [(0, 1), (2,), (3,)]


def test_chunker_joins_an_empty_heading_with_its_section() -> None:
    text = f"# A\n\n## B\n\n### C\n\n{sentences(60)}\n"
    first, *_ = chunk(text)
    assert first.text.startswith("# A\n\n## B\n\n### C\n\nSentence 000")
    text = f"# A\n\n{sentences(28)}\n\n## Empty\n\n### C\n\n{sentences(29)}\n"
    # A and Empty would fit into one chunk, but then C would have lost its heading.
    assert [c.sections for c in chunk(text)] == [(0,), (1, 2)]


def test_chunker_cuts_a_long_section_at_paragraphs() -> None:
    paragraphs = [sentences(10, f"p{number}") for number in range(4)]
    first, second = chunk("# A\n\n" + "\n\n".join(paragraphs))
    assert first.text == f"# A\n\n{paragraphs[0]}\n\n{paragraphs[1]}"
    # The last sentence (49 characters) and the blank line lie within the overlap of 100; one more would make 101.
    assert second.text == paragraphs[1][-49:] + f"\n\n{paragraphs[2]}\n\n{paragraphs[3]}"
    assert first.header_path == second.header_path == ("A",)


def test_chunker_overlap_is_a_parameter() -> None:
    text = "\n\n".join(sentences(10, f"p{number}") for number in range(4))
    for overlap, repeated in ((0, 0), (51, 49), (100, 49), (101, 99), (151, 149), (50, 40)):
        first, second = chunk(text, overlap=overlap)
        assert max(0, first.end - second.start) == repeated


def test_chunker_cuts_a_long_paragraph_between_sentences() -> None:
    pieces = chunk(sentences(70), overlap=0)
    assert len(pieces) == 3
    assert all(piece.text.startswith("Sentence") and piece.text.endswith(".") for piece in pieces)
    assert max(len(piece.text) for piece in pieces) - min(len(piece.text) for piece in pieces) <= 50


def test_chunker_cuts_long_sentences_and_words() -> None:
    pieces = chunk("word " * 700, overlap=0)
    assert [len(piece.text) for piece in pieces] == [1164, 1164, 1169]
    assert all(set(piece.text.split()) == {"word"} for piece in pieces)
    assert [len(piece.text) for piece in chunk("x" * 3001, overlap=0)] == [1001, 1000, 1000]


def test_chunker_cuts_lists_and_tables_between_rows() -> None:
    items = "".join(f"- item {number} lower case and no full stop\n" for number in range(60))
    assert all(piece.text.startswith("- item") for piece in chunk(items))
    rows = "".join(f"| row {number} | One. Two. | Three. |\n" for number in range(90))
    for piece in chunk(f"| a | b | c |\n|---|---|---|\n{rows}"):
        assert piece.text.startswith("|")
        assert piece.text.endswith("|")


def test_chunker_cuts_tables_without_outer_bars_between_rows() -> None:
    rows = "".join(f"lamp number {number:03d} | {number} km\n" for number in range(200))
    chunks = chunk(f"# Lamps\n\nLamp | Range\n--- | ---\n{rows}", overlap=0)
    assert len(chunks) > 2
    assert all(made.text.startswith(("# Lamps", "lamp number")) for made in chunks)


def test_chunker_never_cuts_a_fence() -> None:
    code = "\n\n".join(f"line {number}. Next" for number in range(150))
    text = f"# A\n\n{sentences(20)}\n\n```sh\n{code}\n```\n\n{sentences(20)}\n"
    before, fence, after = chunk(text)
    assert before.text == f"# A\n\n{sentences(20)}"
    assert fence.text == f"```sh\n{code}\n```"
    assert len(fence.text) > 1500
    assert after.text == sentences(20)


def test_chunker_keeps_the_line_before_a_long_fence() -> None:
    code = "\n".join(f"line {number}" for number in range(180))
    (piece,) = chunk(f"# A\n\nRun this:\n\n```sh\n{code}\n```\n")
    assert len(piece.text) > 1500
    assert piece.text.startswith("# A\n\nRun this:\n\n```sh\n")


def test_chunker_keeps_the_heading_of_a_long_fence() -> None:
    code = "\n".join(f"line {number}" for number in range(170))
    (piece,) = chunk(f"## A\n```sh\n{code}\n```\n", least=0)
    assert piece.text.startswith("## A\n```sh")


def test_chunker_overlap_ends_at_fences_and_sections() -> None:
    code = "\n".join(f"line {number}" for number in range(100))
    text = f"{sentences(12)}\n\n```\n{code}\n```\n\n{sentences(20)}\n"
    last = chunk(text)[-1]
    assert last.text == sentences(20)


def test_chunk_ids_depend_on_the_text_only() -> None:
    text = "\n\n".join(f"## H{number}\n\n{sentences(number)}" for number in range(1, 40))
    assert chunk(text) == chunk(text)
    assert [c.chunk_id for c in chunk(text)] == [f"gate/keys#{number}" for number in range(len(chunk(text)))]


@pytest.mark.parametrize(
    ("least", "most", "overlap", "message"),
    [
        (-1, 100, 0, "min_chars must be at least 0, got -1"),
        (0, 100, -5, "overlap_chars must be at least 0, got -5"),
        (90, 100, 20, "min_chars must be at most max_chars - overlap_chars = 80, got 90"),
        (0, 0, 0, "max_chars must be above overlap_chars 0, got 0"),
        (0, 100, 100, "max_chars must be above overlap_chars 100, got 100"),
    ],
)
def test_chunker_refuses_contradicting_sizes(least: int, most: int, overlap: int, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        HeaderChunker(least, most, overlap)
    assert str(error.value) == f"HeaderChunker.{message}"


def test_parent_chunker_refuses_contradicting_sizes() -> None:
    with pytest.raises(ConfigError, check=naming("child_max", "parent_max 500", 600)):
        ParentChildChunker(parent_min=300, parent_max=500)
    with pytest.raises(ConfigError, check=naming("parent_min", 1800, 1900)):
        ParentChildChunker(parent_min=1900)


LONG = "# A\n\n" + "\n\n".join(f"## H{n}\n\n{sentences(4, f'h{n}')}\n\n{sentences(6, f'h{n}')}" for n in range(9))


def two_levels(text: str = LONG, chunker: ParentChildChunker | None = None) -> tuple[list[Chunk], list[Chunk]]:
    chunks = (chunker or ParentChildChunker()).chunk(document(text))
    children = [c for c in chunks if not c.is_parent]
    parents = [c for c in chunks if c.is_parent]
    assert chunks == children + parents
    return children, parents


def test_two_level_chunking() -> None:
    children, parents = two_levels()
    assert [c.chunk_id for c in children] == [f"gate/keys#{n}" for n in range(len(children))]
    assert [c.chunk_id for c in parents] == [f"gate/keys#p{n}" for n in range(len(parents))]
    # A section has 509 characters, blanks included: a child. Three make 1527: a parent. A goes with the first.
    assert [c.sections for c in children] == [(0, 1), *((n,) for n in range(2, 10))]
    assert [c.sections for c in parents] == [(0, 1, 2, 3), (4, 5, 6), (7, 8, 9)]
    assert all(400 <= len(c.text) <= 600 for c in children)
    assert all(1500 <= len(c.text) <= 2000 for c in parents)


def test_parent_reference_stored() -> None:
    children, parents = two_levels()
    assert [c.parent for c in children] == [f"gate/keys#p{n // 3}" for n in range(9)]
    assert all(p.parent is None for p in parents)


def test_parents_contain_their_children() -> None:
    children, parents = two_levels("# A\n\n" + "\n\n".join(sentences(7, f"p{n}") for n in range(20)))
    by_id = {p.chunk_id: p for p in parents}
    assert len(parents) > 1
    for child in children:
        parent = by_id[child.parent or ""]
        assert parent.start <= child.start < child.end <= parent.end
        assert child.text in parent.text


def test_parents_overlap_but_their_children_do_not() -> None:
    children, parents = two_levels("\n\n".join(sentences(7, f"p{n}") for n in range(20)))
    for first, second in pairwise(parents):
        assert 0 < first.end - second.start <= 200
        oldest = next(c for c in children if c.parent == second.chunk_id)
        assert oldest.start >= first.end


def test_parent_of_a_short_document_is_its_child() -> None:
    (child,), (parent,) = two_levels("# A\n\nShort.\n")
    assert child.text == parent.text == "# A\n\nShort."
    assert child.parent == parent.chunk_id


def test_parent_has_a_long_fence_as_one_child() -> None:
    code = "\n\n".join(f"line {number}" for number in range(300))
    children, _ = two_levels(f"# A\n\n{sentences(20)}\n\n- ```\n  {code}\n  ```\n\n{sentences(20)}\n")
    assert sum("line 0" in c.text for c in children) == 1
    assert sum("line 299" in c.text for c in children) == 1
