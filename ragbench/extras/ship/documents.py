"""The documents of an index, to list and to read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragbench.base.types import DocumentMetadata, Link, Section
from ragbench.index.chunks import ChunkTable
from ragbench.index.index import Index


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document among others: `path` is that of its file below the root of the collection."""

    docno: str
    path: str
    title: str


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as an index keeps it: the text its chunks were cut from, where it comes from and what links to it.

    `path` is that of the file below the root of the collection. `text` is without frontmatter; it begins at the line
    `first_line` of the file, counted from 1. `linked_from` lists the docnos of documents that link to it, sorted.
    """

    docno: str
    path: str
    title: str
    text: str
    first_line: int
    frontmatter: Mapping[str, Any]
    sections: tuple[Section, ...]
    links: tuple[Link, ...]
    linked_from: tuple[str, ...]
    metadata: DocumentMetadata


def listed_documents(table: ChunkTable, prefix: str = "") -> list[ListedDocument]:
    """The documents whose docnos begin with `prefix`, sorted by docno."""
    rows = zip(table.docnos, table.document_column("path"), table.titles, strict=True)
    return [ListedDocument(*row) for row in sorted(rows) if row[0].startswith(prefix)]


def stored_document(index: Index, docno: str, lines: tuple[int, int] | None = None) -> StoredDocument | None:
    """The document with this id, None when there is none; `lines` restricts its text to these lines of its file.

    `lines` are the first and the last line, from 1, both included; lines outside the text are ignored.
    """
    table = index.chunks
    row = table.document_number.get(docno)
    if row is None:
        return None
    text, first_line = str(table.document_value("text", row)), int(table.document_value("first_line", row))
    sections = _sections(table, row, len(text))
    if lines is not None:
        start = min(max(lines[0] - first_line, 0), text.count("\n") + 1)
        text = "".join(re.findall("[^\n]*\n|[^\n]+", text)[start : max(start, lines[1] - first_line + 1)])
        first_line += start
    return StoredDocument(
        docno=docno,
        path=str(table.document_value("path", row)),
        title=table.titles[row],
        text=text,
        first_line=first_line,
        frontmatter=table.frontmatter_of(row),
        sections=sections,
        links=tuple(Link(**link) for link in table.document_value("links", row)),
        linked_from=tuple(table.linked_from.get(docno, ())),
        metadata=index.facets.metadata_of(row),
    )


def _sections(table: ChunkTable, row: int, length: int) -> tuple[Section, ...]:
    """The sections of a document; above a section are the nearest earlier headings of each lower level."""
    columns = ("levels", "anchors", "headings", "section_starts")
    levels, anchors, headings, starts = (table.document_value(name, row) for name in columns)
    sections = []
    above: list[tuple[int, str]] = []
    for number, (level, anchor, heading) in enumerate(zip(levels, anchors, headings, strict=True)):
        above = [section for section in above if section[0] < level]
        if level:
            above.append((level, heading))
        end = starts[number + 1] if number + 1 < len(starts) else length
        path = tuple(text for _, text in above)
        sections.append(Section(number, level, path, anchor, starts[number], end))
    return tuple(sections)
