"""Facets: odd frontmatter, hierarchy of tags, edges of ranges."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragbench.base.types import Chunk, Document, DocumentMetadata, Filters, Section
from ragbench.index.chunks import ChunkTable, build_chunks
from ragbench.index.filters import Facets, MetadataSpec


def document(docno: str, frontmatter: dict[str, Any], tags: tuple[str, ...] = ()) -> Document:
    return Document(docno, f"{docno}.md", docno, "", frontmatter, (), (), (), tags, 0.0, 0, docno)


@pytest.fixture
def facets(tmp_path: Path) -> Facets:
    documents = [
        document("a", {"category": "Guide", "author": "Ada Quist"}, ("auth/tokens",)),
        document("b", {"type": "guide", "authors": ["Bo", "ada  quist"]}, ("auth",)),
        document("c", {"category": ["guide", "other"], "author": {"name": "Cy"}}, ("authors", "deep/auth")),
        document("d", {}),
    ]
    build_chunks(tmp_path, documents, [[] for _ in documents])
    return Facets(ChunkTable(tmp_path), np.array([10.0, 20.0, 30.0, 40.0]))


@pytest.mark.parametrize(
    ("filters", "passing"),
    [
        (Filters(), "abcd"),
        (Filters(category="GUIDE"), "abc"),
        (Filters(category=""), "d"),
        (Filters(author="Ada Quist"), "ab"),
        (Filters(author="Cy"), "c"),
        (Filters(tags=("auth",)), "ab"),
        (Filters(tags=("auth/tokens",)), "a"),
        (Filters(tags=("deep", "auth/tokens")), "ac"),
        (Filters(modified_after=20.0), "bcd"),
        (Filters(modified_before=20.0), "ab"),  # inclusive, as in seed 004
        (Filters(modified_before=19.0), "a"),
        (Filters(modified_after=20.0, modified_before=39.0), "bc"),
        (Filters(category="guide", author="Bo", tags=("auth",), modified_after=0.0), "b"),
    ],
)
def test_facets_pass_documents(facets: Facets, filters: Filters, passing: str) -> None:
    assert "".join(np.array(list("abcd"))[facets.passing(filters)]) == passing


@pytest.fixture
def librarian(tmp_path: Path) -> Facets:
    """Of seed 004's fields: p/c/guide of 5 bytes with two chunks, p/api of 9, lone of 12 that says its type."""

    def made(docno: str, size: int, levels: tuple[int, ...], **frontmatter: Any) -> Document:
        sections = tuple(Section(n, level, ("h",) * level, f"h{n}", 0, 1) for n, level in enumerate(levels))
        return Document(
            docno,
            f"{docno}.md",
            docno,
            "text",
            frontmatter,
            sections,
            (),
            (),
            tuple(frontmatter.get("tags", ())),
            0.0,
            size,
            docno,
        )

    documents = [
        made("p/c/guide", 5, (0, 2)),
        made("p/api", 9, (3,)),
        made("lone", 12, (), type="Reference", tags=["x"]),
    ]
    sections = [[(0,), (1, 0)], [(0,)], [()]]
    chunks = [
        [Chunk(f"{d.docno}#{n}", d.docno, "text", (), text, 0, 4) for n, text in enumerate(texts)]
        for d, texts in zip(documents, sections, strict=True)
    ]
    build_chunks(tmp_path, documents, chunks)
    return Facets(ChunkTable(tmp_path), np.array([0.0, 86_400.0, 172_800.0]), "semantic")


@pytest.mark.parametrize(
    ("filters", "passing"),
    [
        (Filters(doc_type="guide"), [0]),
        (Filters(doc_type="API"), [1]),
        (Filters(doc_type="reference"), [2]),
        (Filters(product="P"), [0, 1]),
        (Filters(component="c"), [0]),
        (Filters(product="p", component=""), [1]),
        (Filters(min_bytes=9), [1, 2]),
        (Filters(max_bytes=9), [0, 1]),
        (Filters(min_bytes=6, max_bytes=11), [1]),
        (Filters(doc_type="guide", min_bytes=6), []),
        (Filters(file_types=(".md",)), [0, 1, 2]),
        (Filters(file_types=(".txt", ".docx")), []),
    ],
)
def test_facets_have_conditions_of_librarian(librarian: Facets, filters: Filters, passing: list[int]) -> None:
    assert np.flatnonzero(librarian.passing(filters)).tolist() == passing


def test_facets_without_tags_and_inferred_types(librarian: Facets) -> None:
    assert librarian.passing(Filters(tags=("x",))).tolist() == [False, False, True]
    off = Facets(librarian._table, librarian._modified, spec=MetadataSpec(tags=False, infer_doc_type=False))
    assert not off.passing(Filters(tags=("x",))).any() and not off.passing(Filters(doc_type="guide")).any()
    assert off.passing(Filters(doc_type="reference")).tolist() == [False, False, True]  # it declares its type
    assert [(off.metadata_of(row).tags, off.metadata_of(row).doc_type) for row in (0, 2)] == [
        ((), ""),
        ((), "reference"),
    ]


def test_facets_know_levels_of_headings(librarian: Facets) -> None:
    assert librarian.heading_level.tolist() == [0, 2, 3, 0]
    assert librarian.under_headings((2, 3)).tolist() == [False, True, True, False]
    assert librarian.under_headings((0,)).tolist() == [True, False, False, True]


def test_facets_keep_fields_of_documents(librarian: Facets) -> None:
    expected = DocumentMetadata("1970-01-01T00:00:00+00:00", 5, (), "guide", "p", "c", True, "semantic")
    assert librarian.metadata_of(0) == expected
    assert (librarian.metadata_of(1).is_chunked, librarian.metadata_of(1).chunk_method) == (False, "")
