"""Documents come out of an index as they were read."""

from __future__ import annotations

import pytest

from ragbench.base.types import Document
from ragbench.benchmark.benchmark import Benchmark
from ragbench.extras.ship.documents import listed_documents, stored_document
from ragbench.index.index import Index


def targets(document: Document) -> set[str | None]:
    return {link.target for link in document.links}


def test_stored_documents_are_those_that_were_read(index: Index, benchmark_small: Benchmark) -> None:
    for document in benchmark_small.documents:
        stored = stored_document(index, document.docno)
        for name in ("docno", "path", "title", "text", "first_line", "sections", "links"):
            assert getattr(stored, name) == getattr(document, name), (document.docno, name)
        sources = {other.docno for other in benchmark_small.documents if document.docno in targets(other)}
        assert set(stored.linked_from) == sources
        assert stored.metadata.tags == document.tags
        assert stored.metadata.file_size == document.size_bytes
    assert stored_document(index, "nowhere") is None


@pytest.mark.parametrize(
    ("lines", "text", "first_line"),
    # guides/schedules has frontmatter, its text begins at line 7
    [((1, 10**6), None, None), ((1, 4), "", 7), ((10**6, 10**6), "", None)],
)
def test_stored_document_has_the_asked_lines(
    index: Index, lines: tuple[int, int], text: str | None, first_line: int | None
) -> None:
    whole = stored_document(index, "guides/schedules")
    some = stored_document(index, "guides/schedules", lines)
    assert some.text == (whole.text if text is None else text)
    if first_line is not None:
        assert some.first_line == first_line
    assert some.sections == whole.sections


def test_asked_lines_are_those_of_the_file(index: Index, vault_folder) -> None:
    whole = stored_document(index, "guides/schedules")
    file = (vault_folder / whole.path).read_text(encoding="utf-8").splitlines(keepends=True)
    for start in range(1, len(file) + 2):
        for end in range(start, len(file) + 2):
            some = stored_document(index, "guides/schedules", (start, end))
            assert some.text == "".join(file[max(start, whole.first_line) - 1 : end])


def test_document_lists_are_sorted(index: Index) -> None:
    listed = listed_documents(index.chunks, "guides/")
    assert [document.docno for document in listed] == sorted(d for d in index.chunks.docnos if d.startswith("guides/"))
    assert {document.path for document in listed} == {f"{document.docno}.md" for document in listed}
