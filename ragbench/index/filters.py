"""Which documents meet the conditions of a search: category, author, tags and times (P9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.corpus.metadata import Metadata, read_metadata, tag_lineage

if TYPE_CHECKING:
    from ragbench.index.chunks import ChunkTable
    from ragbench.types import Filters


class Facets:
    """What documents can be filtered by, read from the chunk table once."""

    def __init__(self, table: ChunkTable, modified: NDArray[np.float64]) -> None:
        """`modified` holds seconds since the epoch of every document, shape (n_documents,)."""
        self._table = table
        self._modified = modified

    def passing(self, filters: Filters) -> NDArray[np.bool_]:
        """Whether each document meets all conditions, shape (n_documents,)."""
        passes = np.ones(self._table.n_documents, dtype=np.bool_)
        if filters.category is not None:
            wanted = _folded(filters.category)
            passes &= _flags(_folded(metadata.category) == wanted for metadata in self._metadata)
        if filters.author is not None:
            wanted = _folded(filters.author)
            passes &= _flags(wanted in map(_folded, metadata.authors) for metadata in self._metadata)
        if filters.tags:
            passes &= _flags(not lineage.isdisjoint(filters.tags) for lineage in self._tags)
        if filters.modified_after is not None:
            passes &= self._modified >= filters.modified_after
        if filters.modified_before is not None:
            passes &= self._modified < filters.modified_before
        return passes

    @cached_property
    def _metadata(self) -> Sequence[Metadata]:
        return [read_metadata(frontmatter) for frontmatter in self._table.frontmatter]

    @cached_property
    def _tags(self) -> Sequence[frozenset[str]]:
        """The tags of every document with those above them."""
        return [
            frozenset(above for tag in tags for above in tag_lineage(tag))
            for tags in self._table.document_column("tags")
        ]


def _flags(values: Iterable[bool]) -> NDArray[np.bool_]:
    return np.fromiter(values, dtype=np.bool_)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
