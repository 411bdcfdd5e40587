"""Finds the documents that meet the conditions of a search: category, author, tags, times (P9), type, folders, size."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from posixpath import splitext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.options import Validated, section
from ragbench.base.types import ConfigError, DocumentMetadata, did_you_mean
from ragbench.corpus.metadata import Metadata, read_metadata
from ragbench.index.doc_type import component_of, doc_type, product_of
from ragbench.index.parts import Part

if TYPE_CHECKING:
    from ragbench.base.types import Filters
    from ragbench.index.chunks import ChunkTable
    from ragbench.index.index import Index


@section("index.metadata")
@dataclass(frozen=True)
class MetadataSpec(Validated):
    """The metadata of documents that a search filters by and shows. Seed 004, feature 3."""

    tags: bool = True  # false: documents have no tags
    infer_doc_type: bool = True  # false: only documents that declare a type have one


class Facets:
    """The properties that documents can be filtered by, read from the chunk table once."""

    def __init__(
        self,
        table: ChunkTable,
        modified: NDArray[np.float64],
        chunk_method: str = "",
        spec: MetadataSpec | None = None,
    ) -> None:
        """`modified` holds seconds since the epoch of every document, shape (n_documents,)."""
        self._chunk_method = chunk_method
        self._spec = spec or MetadataSpec()
        self._table = table
        self._modified = modified
        self._values = cache(self._new_values)
        self._columns = cache(self._new_column)
        self.metadata_of = lru_cache(10_000)(self._metadata_of)  # inferring the type of a document reads its text

    def passing(self, filters: Filters) -> NDArray[np.bool_]:
        """Whether each document meets all conditions, shape (n_documents,)."""
        passes = np.ones(self._table.n_documents, dtype=np.bool_)
        if filters.author is not None:
            accepted = _without_case(filters.author)
            passes &= _flags(accepted in map(_without_case, metadata.authors) for metadata in self._metadata)
        if filters.tags:
            passes &= _flags(not lineage.isdisjoint(filters.tags) for lineage in self._tags)
        if filters.modified_after is not None:
            passes &= self._modified >= filters.modified_after
        if filters.modified_before is not None:
            passes &= self._modified <= filters.modified_before
        for name in ("category", "doc_type", "product", "component"):
            if getattr(filters, name) is not None:
                accepted = _without_case(getattr(filters, name))
                passes &= _flags(_without_case(value) == accepted for value in self._values(name))
        for name, accepted_values in filters.frontmatter:
            wanted = frozenset(map(_without_case, accepted_values))
            passes &= _flags(not wanted.isdisjoint(values) for values in self._columns(name))
        if filters.min_bytes is not None:
            passes &= self._sizes >= filters.min_bytes
        if filters.max_bytes is not None:
            passes &= self._sizes <= filters.max_bytes
        if filters.file_types:
            passes &= _flags(splitext(path)[1].casefold() in filters.file_types for path in self._table.paths)
        return passes

    def under_headings(self, levels: Sequence[int]) -> NDArray[np.bool_]:
        """Whether each chunk begins under a heading of one of the levels, shape (n_chunks,)."""
        return np.isin(self.heading_level, list(levels))

    @cached_property
    def heading_level(self) -> NDArray[np.int32]:
        """The level of the heading under which each chunk begins, 0 for none, shape (n_chunks,)."""
        levels = self._table.document_column("levels")
        levels_of_chunk = (
            levels[document][sections[0]] if sections else 0
            for document, sections in zip(self._table.document.tolist(), self._table.sections, strict=True)
        )
        return np.fromiter(levels_of_chunk, dtype=np.int32, count=len(self._table))

    def _new_values(self, name: str) -> Sequence[str]:
        """A property of every document. The type is declared, else inferred from its name and text (seed 004)."""
        if name == "category":
            return [metadata.category for metadata in self._metadata]
        if name == "doc_type":
            return [self._doc_type(document) for document in range(self._table.n_documents)]
        part_of = product_of if name == "product" else component_of
        declared = (self._table.frontmatter_of(document).get(name) for document in range(self._table.n_documents))
        return [
            value if isinstance(value, str) and value.strip() else part_of(docno)
            for docno, value in zip(self._table.docnos, declared, strict=True)
        ]

    def _new_column(self, name: str) -> Sequence[frozenset[str]]:
        """The values of a column of the frontmatter, by document. Raises ConfigError for one that no document has."""
        rows = self._table.frontmatter
        values = [frozenset(map(_without_case, values_of(row.get(name, ())))) for row in rows]
        if not any(values):
            hint = did_you_mean(name, (column for row in rows for column in row), "columns")
            raise ConfigError(f"filters: no document has '{name}' in its frontmatter{hint}")
        return values

    def _metadata_of(self, document: int) -> DocumentMetadata:
        """The metadata that seed 004 keeps next to every chunk of a document, by its row."""
        modified = datetime.datetime.fromtimestamp(self._modified[document], datetime.UTC)
        first, last = self._table.chunks_of(document)
        return DocumentMetadata(
            last_modified=modified.isoformat(),
            file_size=int(self._sizes[document]),
            tags=tuple(self._table.document_value("tags", document)) if self._spec.tags else (),
            doc_type=self._doc_type(document),
            product=product_of(self._table.docnos[document]),
            component=component_of(self._table.docnos[document]),
            is_chunked=last - first > 1,
            chunk_method=self._chunk_method if last - first > 1 else "",
        )

    def _doc_type(self, document: int) -> str:
        path, text, title = (self._table.document_value(name, document) for name in ("path", "text", "title"))
        return doc_type(path, text, self._frontmatter(document), title, infer=self._spec.infer_doc_type)

    def _frontmatter(self, document: int) -> Metadata:
        return read_metadata(self._table.frontmatter_of(document))

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        return np.asarray(self._table.document_column("size_bytes"), dtype=np.int64)

    @cached_property
    def _metadata(self) -> Sequence[Metadata]:
        return [self._frontmatter(document) for document in range(self._table.n_documents)]

    @cached_property
    def _tags(self) -> Sequence[frozenset[str]]:
        """The tags of every document, and for `a/b` also `a`."""
        return [
            frozenset(above for tag in tags for above in tag_lineage(tag) if self._spec.tags)
            for tags in self._table.document_column("tags")
        ]


def _flags(values: Iterable[bool]) -> NDArray[np.bool_]:
    return np.fromiter(values, dtype=np.bool_)


def _without_case(text: str) -> str:
    return " ".join(text.casefold().split())


def _modified(index: Index) -> NDArray[np.float64]:
    """When each document was modified, in seconds since the epoch, shape (n_documents,)."""
    times = index.times()
    return np.array([times[docno] for docno in index.chunks.docnos], dtype=np.float64)


FACETS = Part(
    "facets",
    fingerprint=lambda index: index.collection,
    open=lambda index: Facets(
        index.chunks, index.modified, getattr(index.spec.chunker, "method", ""), index.spec.metadata
    ),
)
MODIFIED = Part("modified", fingerprint=lambda index: index.collection, open=_modified)


def tag_lineage(tag: str) -> tuple[str, ...]:
    """A hierarchical tag and those above it, outermost first: `auth/tokens` -> `auth`, `auth/tokens`."""
    parts = tag.split("/")
    return tuple("/".join(parts[: depth + 1]) for depth in range(len(parts)))


def values_of(value: Any) -> tuple[str, ...]:
    """The values of a condition or of a column as texts: of a list all, else the one; truth as `true` and `false`."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    return tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in values if one is not None)
