"""The documents and chunks of an index as rows, the same for every engine."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbench.base import files
from ragbench.base.fingerprint import digest
from ragbench.corpus import searched
from ragbench.corpus.metadata import read_metadata
from ragbench.extras.engines.plan import SearchPlan
from ragbench.index.chunks import ChunkTable
from ragbench.index.index import Index
from ragbench.index.texts import Unit, lexical_rows


@dataclass(frozen=True)
class ChunkRow:
    """A chunk: its place in its file, its text, the normalised texts of its fields, and what is embedded for it."""

    chunk_id: str
    headings: tuple[str, ...]
    heading_level: int
    start_line: int
    end_line: int
    text: str
    fields: Mapping[str, str]
    passage: str
    number: int


@dataclass(frozen=True)
class DocumentRow:
    """A document with its chunks; `digest` is one over everything that an engine keeps of it."""

    docno: str
    path: str
    title: str
    modified: float
    metadata: Mapping[str, Any]
    fields: Mapping[str, str]
    chunks: tuple[ChunkRow, ...]
    digest: str


def rows(index: Index, plan: SearchPlan) -> Iterator[DocumentRow]:
    """Every document of an index, in order."""
    table, facets, modified = index.chunks, index.facets, index.modified
    names = [name for name, _ in plan.words.weights] if plan.words else []
    wholes = [name for name, _ in plan.wholes.weights] if plan.wholes else []
    of_chunks = _fields(table, names, "chunk") if names else ({} for _ in range(table.n_retrievable))
    of_documents = _fields(table, wholes, "document") if wholes else ({} for _ in range(table.n_documents))
    passages = index.spec.passage.passages(table) if "dense" in plan.depths else [""] * table.n_retrievable
    for row, fields in enumerate(of_documents):
        first, stop = table.chunks_of(row)
        chunks = []
        for number in range(first, stop):
            lines = table.lines(number)
            chunks.append(
                ChunkRow(
                    table.chunk_ids[number],
                    table.header_path(number),
                    int(facets.heading_level[number]),
                    *lines,
                    table.text(number),
                    next(of_chunks),
                    passages[number],
                    number,
                )
            )
        metadata_read, metadata = facets.metadata_of(row), read_metadata(table.frontmatter_of(row))
        metadata_fields = {
            "tags": list(metadata_read.tags),
            "doc_type": metadata_read.doc_type,
            "product": metadata_read.product,
            "component": metadata_read.component,
            "category": metadata.category,
            "authors": list(metadata.authors),
            "file_size": metadata_read.file_size,
        }
        content = [table.titles[row], metadata_fields, fields, [[*vars_of(chunk)] for chunk in chunks]]
        yield DocumentRow(
            table.docnos[row],
            str(table.document_value("path", row)),
            table.titles[row],
            float(modified[row]),
            metadata_fields,
            fields,
            tuple(chunks),
            digest(json.dumps(content, default=str)),
        )


def _fields(table: ChunkTable, names: Sequence[str], unit: Unit) -> Iterator[Mapping[str, str]]:
    """The texts of the fields, normalised as queries are (`words.query_terms`)."""
    for fields in lexical_rows(table, names, unit):
        yield {name: searched.normalised(text) for name, text in fields.items()}


def vars_of(chunk: ChunkRow) -> tuple[Any, ...]:
    """What a chunk consists of, without its number."""
    return (
        *(chunk.chunk_id, chunk.headings, chunk.heading_level, chunk.start_line, chunk.end_line),
        *(chunk.text, dict(chunk.fields), chunk.passage),
    )


def passage_key(passage: str) -> str:
    """The key under which the vector of a passage is found again."""
    return hashlib.blake2b(passage.encode(), digest_size=16).hexdigest()


def temporary_folder(name: str) -> Path:
    """Make a folder for temporary files; the next call removes those of processes that were killed."""
    root = Path(tempfile.gettempdir())
    files.remove_abandoned(root)
    folder = files.draft_of(root / name)
    folder.mkdir(mode=0o700)
    return folder
