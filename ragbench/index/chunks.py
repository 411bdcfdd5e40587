"""The chunk table, which all other artefacts refer to, as memory-mapped Arrow columns.

Chunks that can be retrieved come first, in document order; parent chunks (P13) follow. A chunk's number is its row.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base import progress
from ragbench.base.document_names import is_untitled
from ragbench.base.types import Chunk
from ragbench.boundary.json import read_json
from ragbench.corpus.metadata import read_metadata
from ragbench.index.language_detection import language
from ragbench.index.openings import opening
from ragbench.index.parts import StoredPart

if TYPE_CHECKING:
    import pyarrow as pa

    from ragbench.base.types import Document
    from ragbench.index.index import Index

VERSION = 8
_CHUNKS, _DOCUMENTS, _BLOCKS = "chunks.arrow", "documents.arrow", "blocks.arrow"


def build_chunks(folder: Path, documents: Sequence[Document], chunks_of: Iterable[list[Chunk]]) -> None:
    """Write the tables of chunks, documents and code blocks; `chunks_of` yields one list per document, in order.

    A document without chunks gets one made of its title, if it has one (`_chunk_of_title`).
    """
    retrievable: list[tuple[int, Chunk]] = []
    parents: list[tuple[int, Chunk]] = []
    for number, chunks in enumerate(chunks_of):
        for chunk in chunks or _chunk_of_title(documents[number]):
            (parents if chunk.is_parent else retrievable).append((number, chunk))
    _write(folder / _CHUNKS, _chunk_columns(retrievable + parents, documents))
    _write(folder / _DOCUMENTS, _document_columns(documents))
    _write(folder / _BLOCKS, _block_columns(list(_blocks_with_chunks(documents, retrievable))))


def _chunk_columns(rows: Sequence[tuple[int, Chunk]], documents: Sequence[Document]) -> dict[str, pa.Array]:
    """The columns of the chunk table, for chunks with the numbers of their documents."""
    import pyarrow as pa

    lines = [_Lines(document) for document in documents]
    number_of = {chunk.chunk_id: row for row, (_, chunk) in enumerate(rows)}
    chunks = [chunk for _, chunk in rows]
    return {
        "chunk_id": _array([c.chunk_id for c in chunks], pa.large_string()),
        "document": _array([d for d, _ in rows], pa.int32()),
        "text": _array([c.text for c in chunks], pa.large_string()),
        "header_path": _array([list(c.header_path) for c in chunks], pa.list_(pa.string())),
        "sections": _array([list(c.sections) for c in chunks], pa.list_(pa.int32())),
        "start": _array([c.start for c in chunks], pa.int32()),
        "end": _array([c.end for c in chunks], pa.int32()),
        "start_line": _array([lines[d].of(c.start) for d, c in rows], pa.int32()),
        "end_line": _array([lines[d].of(c.end - 1) for d, c in rows], pa.int32()),
        "parent": _array([number_of[c.parent] if c.parent else -1 for c in chunks], pa.int32()),
        "is_parent": _array([c.is_parent for c in chunks], pa.bool_()),
        "content_hash": _array([_content_hash(c.text) for c in chunks], pa.uint64()),
    }


def _document_columns(documents: Sequence[Document]) -> dict[str, pa.Array]:
    """The columns of the table of documents; those of sections and links hold a list for each document."""
    import pyarrow as pa

    sections = [document.sections for document in documents]
    headings = [[section.path[-1] if section.path else "" for section in listed] for listed in sections]
    link = pa.struct([(name, pa.string()) for name in ("kind", "text", "target", "heading", "label")])
    return {
        "docno": _array([d.docno for d in documents], pa.large_string()),
        "path": _array([d.path for d in documents], pa.large_string()),
        "title": _array([d.title for d in documents], pa.large_string()),
        "text": _array([d.text for d in documents], pa.large_string()),
        "first_line": _array([d.first_line for d in documents], pa.int32()),
        "frontmatter": _array([_frontmatter_json(d.frontmatter) for d in documents], pa.large_string()),
        "tags": _array([list(d.tags) for d in documents], pa.list_(pa.string())),
        "digest": _array([d.digest for d in documents], pa.string()),
        "size_bytes": _array([d.size_bytes for d in documents], pa.int64()),
        "anchors": _array([[section.anchor for section in listed] for listed in sections], pa.list_(pa.string())),
        "levels": _array([[section.level for section in listed] for listed in sections], pa.list_(pa.int32())),
        "headings": _array(headings, pa.list_(pa.string())),
        "section_starts": _array([[section.start for section in listed] for listed in sections], pa.list_(pa.int32())),
        "links": _array([list(map(asdict, d.links)) for d in documents], pa.list_(link)),
    }


def _block_columns(blocks: Sequence[tuple[int, str, str, int, int]]) -> dict[str, pa.Array]:
    """The columns of the table of code blocks."""
    import pyarrow as pa

    types = (pa.int32(), pa.string(), pa.large_string(), pa.int32(), pa.int32())
    names = ("chunk", "language", "code", "start_line", "end_line")
    return {
        name: _array([block[column] for block in blocks], kind)
        for column, (name, kind) in enumerate(zip(names, types, strict=True))
    }


def _chunk_of_title(document: Document) -> list[Chunk]:
    """One chunk for a document without text: title and description, so that it can be found; none without these."""
    title = "" if is_untitled(document.title, document.path) else document.title
    text = "\n\n".join(filter(None, (title, read_metadata(document.frontmatter).description)))
    return [Chunk(f"{document.docno}#0", document.docno, text, (), (), 0, 0)] if text else []


class ChunkTable:
    """Chunks, their documents and their code blocks, read from an artefact's folder without copying it into memory."""

    def __init__(self, folder: Path) -> None:
        """Map the three tables of `folder`."""
        self._chunks = _read(folder / _CHUNKS)
        self._documents = _read(folder / _DOCUMENTS)
        self._blocks = _read(folder / _BLOCKS)
        self._first_document = 0
        self._all_documents = self._documents

    def check(self) -> None:
        """Read everything. Raises ValueError for values that are not of their type, and for rows that do not exist."""
        for table in (self._chunks, self._documents, self._blocks):
            table.validate(full=True)
        rows = ((self.document, 0, self.n_documents), (self.parent, -1, len(self)), (self.chunk_of_block, 0, len(self)))
        for numbers, first, stop in rows:
            if len(numbers) and not first <= numbers.min() <= numbers.max() < stop:
                raise ValueError("a row that does not exist")

    def __len__(self) -> int:
        return int(self._chunks.num_rows)

    @property
    def n_documents(self) -> int:
        """How many documents the chunks come from."""
        return int(self._documents.num_rows)

    @cached_property
    def n_retrievable(self) -> int:
        """How many chunks can be retrieved: the rows before the first parent."""
        return len(self) - sum(int(part.true_count) for part in self._chunks["is_parent"].chunks)

    @cached_property
    def document(self) -> NDArray[np.int32]:
        """The document's row of every chunk, shape (n,)."""
        return _numbers(self._chunks["document"]) - np.int32(self._first_document)

    @cached_property
    def parent(self) -> NDArray[np.int32]:
        """The parent's chunk number of every chunk, -1 without one, shape (n,)."""
        return _numbers(self._chunks["parent"])

    @cached_property
    def content_hash(self) -> NDArray[np.uint64]:
        """64 bits of a digest of every chunk's text, shape (n,)."""
        return _numbers(self._chunks["content_hash"])

    @cached_property
    def docnos(self) -> list[str]:
        """The docno of every document row."""
        return [str(docno) for docno in self._documents["docno"].to_pylist()]

    @cached_property
    def document_number(self) -> Mapping[str, int]:
        """The row of every docno."""
        return {docno: number for number, docno in enumerate(self.docnos)}

    @cached_property
    def titles(self) -> list[str]:
        """The title of every document row."""
        return [str(title) for title in self._documents["title"].to_pylist()]

    @cached_property
    def paths(self) -> list[str]:
        """The path of every document row; for a record of a test collection this is its docno."""
        return [str(path) for path in self._documents["path"].to_pylist()]

    @cached_property
    def groups(self) -> list[tuple[str, str]]:
        """(folder, type) of every document row: its first folder; `category` or `type`, else its last folder."""
        folders = [docno.split("/")[:-1] or [""] for docno in self.docnos]
        types = [read_metadata(frontmatter).category.strip().lower() for frontmatter in self.frontmatter]
        return [(folder[0], kind or folder[-1]) for folder, kind in zip(folders, types, strict=True)]

    @cached_property
    def languages(self) -> list[str]:
        """The language of every document row, "" where it is not known (`ragbench.index.language_detection`)."""
        return [language(str(self.document_value("text", document))) for document in range(self.n_documents)]

    @cached_property
    def chunk_ids(self) -> list[str]:
        """The chunk id of every row."""
        return [str(chunk_id) for chunk_id in self._chunks["chunk_id"].to_pylist()]

    def part(self, first: int, stop: int) -> ChunkTable:
        """The documents from `first` to before `stop` and their retrievable chunks; both are numbered from 0 again."""
        part = copy(self)
        part.__dict__ = {name: value for name, value in self.__dict__.items() if name.startswith("_")}
        start, end = self.chunks_of(first)[0], self.chunks_of(stop - 1)[1]
        part._chunks = self._chunks.slice(start, end - start)
        part._documents = self._documents.slice(first, stop - first)
        part._blocks = self._blocks.slice(0, 0)
        part._first_document = self._first_document + first
        return part

    def chunks_of(self, document: int) -> tuple[int, int]:
        """The first retrievable chunk of a document's row and the one after its last."""
        first, last = self.ranges
        return int(first[document]), int(last[document])

    def chunks_of_each(self, documents: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """The retrievable chunks of several documents' rows, one row after the other, and how many each has."""
        first, last = (ends[documents] for ends in self.ranges)
        counts = last - first
        return (np.arange(counts.sum()) + (last - counts.cumsum()).repeat(counts)).astype(np.int32), counts

    @cached_property
    def ranges(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first retrievable chunk of every document's row and the one after its last, shape (n_documents,)."""
        owners, rows = self.document[: self.n_retrievable], np.arange(self.n_documents)
        return np.searchsorted(owners, rows, side="left"), np.searchsorted(owners, rows, side="right")

    @cached_property
    def frontmatter(self) -> list[Mapping[str, Any]]:
        """The frontmatter of every document row; dates are ISO strings."""
        return [self.frontmatter_of(document) for document in range(self.n_documents)]

    def frontmatter_of(self, document: int) -> Mapping[str, Any]:
        """The frontmatter of a document's row."""
        values: Mapping[str, Any] = read_json(self.document_value("frontmatter", document), own=True)
        return values

    @cached_property
    def links(self) -> list[list[tuple[str, str]]]:
        """(kind, target docno) of every resolved link, by document row."""
        rows = self._documents["links"].to_pylist()
        return [[(link["kind"], link["target"]) for link in row if link["target"]] for row in rows]

    @cached_property
    def linked_from(self) -> Mapping[str, list[str]]:
        """The docnos of the documents that link to a document, sorted, by its docno."""
        linking: dict[str, set[str]] = {}
        for docno, links in zip(self.docnos, self.links, strict=True):
            for _, target in links:
                linking.setdefault(target, set()).add(docno)
        return {docno: sorted(sources) for docno, sources in linking.items()}

    @cached_property
    def labels(self) -> list[list[str]]:
        """The labels of the links that point to each document row from other documents, each once, in their order."""
        return [list(self._labels_by_docno.get(docno, ())) for docno in self.docnos]

    @cached_property
    def _labels_by_docno(self) -> Mapping[str, Iterable[str]]:
        """The anchor texts in all documents, also in a `part` of the table; a part made later shares them."""
        labels: dict[str, dict[str, None]] = {}
        columns = (self._all_documents[name].to_pylist() for name in ("docno", "links"))
        for source, links in zip(*columns, strict=True):
            for link in links:
                if link["target"] not in (None, source) and link["label"]:
                    labels.setdefault(link["target"], {})[link["label"]] = None
        return labels

    def document_column(self, name: str) -> list[Any]:
        """A column of the documents table: path, tags, size_bytes, anchors, levels or headings."""
        return list(self._documents[name].to_pylist())

    def document_value(self, name: str, document: int) -> Any:
        """One document's value in a column: those of `document_column`, text, first_line or links."""
        return self._documents[name][int(document)].as_py()

    def docno(self, chunk: int) -> str:
        """The docno a chunk belongs to."""
        return self.docnos[int(self.document[chunk])]

    def text(self, chunk: int) -> str:
        """A chunk's text."""
        return str(self._chunks["text"][int(chunk)].as_py())

    def opening(self, chunk: int) -> str:
        """The lines that a chunk continues, such as the header of its table (`ragbench.index.openings`)."""
        start, document = self.span(chunk)[0], int(self.document[int(chunk)])
        return opening(str(self.document_value("text", document)), start) if start else ""

    def texts(self, start: int = 0, stop: int | None = None) -> list[str]:
        """The texts of a range of chunks."""
        stop = len(self) if stop is None else stop
        return [str(text) for text in self._chunks["text"].slice(start, stop - start).to_pylist()]

    def header_path(self, chunk: int) -> tuple[str, ...]:
        """The headings above a chunk's first character."""
        return tuple(self._chunks["header_path"][int(chunk)].as_py())

    def span(self, chunk: int) -> tuple[int, int]:
        """A chunk's character offsets into its document's text."""
        starts, ends = self.offsets
        return int(starts[chunk]), int(ends[chunk])

    @cached_property
    def offsets(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Where every chunk begins in its document's text, and where it ends, each of shape (n,)."""
        return _numbers(self._chunks["start"]), _numbers(self._chunks["end"])

    def lines(self, chunk: int) -> tuple[int, int]:
        """The first and the last line of a chunk in its file, from 1."""
        row = int(chunk)
        return int(self._chunks["start_line"][row].as_py()), int(self._chunks["end_line"][row].as_py())

    @cached_property
    def sections(self) -> list[list[int]]:
        """The numbers of the sections each chunk overlaps, in order."""
        return list(self._chunks["sections"].to_pylist())

    @cached_property
    def section_ids(self) -> list[tuple[str, ...]]:
        """`docno#anchor` of the sections each chunk overlaps, in order."""
        anchors = self.document_column("anchors")
        return [
            tuple(f"{self.docnos[document]}#{anchors[document][section]}" for section in sections)
            for document, sections in zip(self.document, self.sections, strict=True)
        ]

    def section_spans(self, docno: str, anchor: str) -> list[tuple[int, int]]:
        """Start and end of the section with an anchor in its document's text; empty if it has none."""
        row = self.document_number.get(docno)
        if row is None or anchor not in (anchors := self.document_value("anchors", row)):
            return []
        number, starts = anchors.index(anchor), self.document_value("section_starts", row)
        end = starts[number + 1] if number + 1 < len(starts) else len(self.document_value("text", row))
        return [(starts[number], end)]

    @property
    def blocks(self) -> pa.Table:
        """The code blocks: chunk, language, code, start_line, end_line."""
        return self._blocks

    @cached_property
    def chunk_of_block(self) -> NDArray[np.int32]:
        """The chunk that holds each code block."""
        return _numbers(self._blocks["chunk"])


class _Lines:
    """The lines of a document's file."""

    def __init__(self, document: Document) -> None:
        self._first = document.first_line
        self._breaks = [match.start() for match in re.finditer("\n", document.text)]

    def of(self, offset: int) -> int:
        """The line that holds the character at an offset into the text."""
        return self._first + bisect_left(self._breaks, offset)


def _blocks_with_chunks(
    documents: Sequence[Document], retrievable: Sequence[tuple[int, Chunk]]
) -> Iterable[tuple[int, str, str, int, int]]:
    """Every code block with the number of the chunk that holds most of it (the first of several)."""
    spans: dict[int, list[tuple[int, Chunk]]] = {}
    for row, (owner, chunk) in enumerate(retrievable):
        spans.setdefault(owner, []).append((row, chunk))
    for number, document in enumerate(documents):
        for block in document.code_blocks:
            overlaps = [
                (min(chunk.end, block.end) - max(chunk.start, block.start), -row)
                for row, chunk in spans.get(number, [])
            ]
            if overlaps and max(overlaps)[0] > 0:
                yield -max(overlaps)[1], block.language, block.code, block.start_line, block.end_line


def _content_hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _frontmatter_json(frontmatter: Mapping[str, Any]) -> str:
    return json.dumps(frontmatter, default=str, sort_keys=True, ensure_ascii=False)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """As `pyarrow.array`, which imports pandas: this takes longer than reading a thousand pages."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        fields = [_array([value[field.name] for value in values], field.type) for field in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind))
    if pa.types.is_list(kind):
        items = _array(list(chain.from_iterable(values)), kind.value_type)
        return pa.ListArray.from_arrays(_array([*accumulate(map(len, values), initial=0)], pa.int32()), items, kind)
    present = np.array([value is not None for value in values], bool)
    if str(kind).endswith("string"):
        texts = [(value or "").encode() for value in values]
        offsets = [*accumulate(map(len, texts), initial=0)]
        data = [np.array(offsets, "int32" if kind == pa.string() else "int64"), b"".join(texts)]
    else:
        numbers = np.array(values, str(kind))
        data = [np.packbits(numbers, bitorder="little") if kind == pa.bool_() else numbers]
    missing = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [missing, *map(pa.py_buffer, data)])


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """As `column.to_numpy()`, which imports pandas, too."""
    kind = np.dtype(str(column.type))
    parts = [np.frombuffer(p.buffers()[1], kind, len(p), p.offset * kind.itemsize) for p in column.chunks if len(p)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])


def _write(path: Path, columns: Mapping[str, pa.Array]) -> None:
    import pyarrow as pa

    table = pa.table(dict(columns))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _read(path: Path) -> pa.Table:
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _build(folder: Path, index: Index) -> None:
    documents, chunker = index.documents, index.spec.chunker
    chunked = (chunker.chunk(document) for document in documents)
    build_chunks(folder, documents, progress.counted("chunking", chunked, len(documents)))


PART = StoredPart(
    "chunks",
    inputs=lambda index: [index.collection, VERSION, index.spec.chunker.version, index.spec.chunker],
    build=_build,
    open=lambda folder, index: ChunkTable(folder),
)
