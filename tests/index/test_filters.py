"""Facets: odd frontmatter, hierarchy of tags, edges of ranges."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragbench.index.chunks import ChunkTable, build_chunks
from ragbench.index.filters import Facets
from ragbench.types import Document, Filters


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
        (Filters(modified_before=20.0), "a"),
        (Filters(modified_after=20.0, modified_before=40.0), "bc"),
        (Filters(category="guide", author="Bo", tags=("auth",), modified_after=0.0), "b"),
    ],
)
def test_passing(facets: Facets, filters: Filters, passing: str) -> None:
    assert "".join(np.array(list("abcd"))[facets.passing(filters)]) == passing
