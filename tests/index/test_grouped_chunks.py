"""Parents over the chunks of HeaderChunker (`p13=expand_only`)."""

from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base.types import Chunk, ConfigError, Document
from ragbench.corpus.reader import parse_document, read_vault
from ragbench.index.chunking import GroupedChunker, HeaderChunker
from tests.naming import naming

CORPUS = Path(__file__).parent.parent.parent / "corpus" / "v2"


def two_levels(document: Document, chunker: GroupedChunker | None = None) -> tuple[list[Chunk], list[Chunk]]:
    chunks = (chunker or GroupedChunker()).chunk(document)
    children = [c for c in chunks if not c.is_parent]
    parents = [c for c in chunks if c.is_parent]
    assert chunks == children + parents
    return children, parents


def test_grouped_chunks_are_the_chunks_without_parents() -> None:
    for document in read_vault(CORPUS).documents:
        children, _ = two_levels(document)
        assert [replace(child, parent=None) for child in children] == HeaderChunker().chunk(document)


def test_grouped_chunks_fill_their_parents() -> None:
    for document in read_vault(CORPUS).documents:
        children, parents = two_levels(document)
        by_id = {parent.chunk_id: parent for parent in parents}
        assert list(by_id) == [f"{document.docno}#p{n}" for n in range(len(parents))]
        assert list(dict.fromkeys(child.parent for child in children)) == list(by_id)
        for child in children:
            parent = by_id[child.parent or ""]
            assert parent.start <= child.start < child.end <= parent.end
            assert child.text in parent.text
            assert set(child.sections) <= set(parent.sections)
        for parent in parents:
            held = [child for child in children if child.parent == parent.chunk_id]
            assert parent.text == document.text[held[0].start : held[-1].end]
            assert len(held) == 1 or len(parent.text) <= 2000


def test_grouped_chunks_by_hand() -> None:
    # sections of 505 characters, blank lines included; three fit into 1600, four do not
    text = "".join(f"# H{n}\n\n{'x' * 497}\n\n" for n in range(4))
    children, parents = two_levels(parse_document("d", "d.md", text.encode(), 0.0)[0], GroupedChunker(parent_max=1600))
    assert [child.parent for child in children] == ["d#p0", "d#p0", "d#p0", "d#p1"]
    assert [(parent.start, parent.end, parent.header_path) for parent in parents] == [
        (0, 1513, ("H0",)),
        (1515, 2018, ("H3",)),
    ]


def test_grouped_chunker_makes_no_chunks_of_no_text() -> None:
    assert GroupedChunker().chunk(parse_document("d", "d.md", b"", 0.0)[0]) == []


def test_grouped_chunker_refuses_contradicting_sizes() -> None:
    with pytest.raises(ConfigError, check=naming("max_chars", "parent_max 1000", 1500)):
        GroupedChunker(parent_max=1000)
    with pytest.raises(ConfigError, check=naming("max_chars", "overlap_chars")):
        GroupedChunker(overlap_chars=1500)
