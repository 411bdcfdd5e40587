"""The names of documents, to find the notes that a query mentions: ids, ends of paths, titles and aliases."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ragbench.corpus.metadata import normalise_tags, read_metadata, timestamp
from ragbench.index.parts import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragbench.index.chunks import ChunkTable

_MENTION = re.compile(r"\[\[([^\[\]]+)\]\]")
_TAG = re.compile(r"(?<![\w#&/])#([\w/-]*[^\W\d][\w/-]*)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def mentions(text: str) -> tuple[str, ...]:
    """The names in `[[note]]`, `[[note#heading]]` and `[[note|label]]`, each once, in order."""
    written = (mention.partition("|")[0].partition("#")[0].strip() for mention in _MENTION.findall(text))
    return tuple(dict.fromkeys(name for name in written if name))


def tags_in(text: str) -> tuple[str, ...]:
    """The `#tags` of a text without `#`, lower-case, each once, in order; `#42` is not a tag."""
    return normalise_tags(_TAG.findall(text))


class TitleIndex:
    """Documents by name, without regard to case."""

    def __init__(self, table: ChunkTable) -> None:
        """`table` holds the documents."""
        self._table = table

    def rows_named(self, name: str) -> tuple[int, ...]:
        """The rows of the documents that a mention names, in order.

        A whole path names one document. Any other name stands for all documents with this title, alias or end of path.
        """
        folded = _fold(re.sub(r"\.(md|markdown)$", "", name.strip().strip("/"), flags=re.IGNORECASE))
        return self._paths.get(folded) or self._other_names.get(folded, ())

    @cached_property
    def days(self) -> tuple[tuple[int, float], ...]:
        """(row, day) of every note whose name is a day such as 2026-01-31; the day is in seconds since the epoch."""
        days = ((timestamp(name), rows) for name, rows in self._other_names.items() if _DAY.fullmatch(name))
        return tuple(sorted((row, day) for day, rows in days if day is not None for row in rows))

    @cached_property
    def _paths(self) -> Mapping[str, tuple[int, ...]]:
        return _group_rows((_fold(unquote(docno)), row) for row, docno in enumerate(self._table.docnos))

    @cached_property
    def _other_names(self) -> Mapping[str, tuple[int, ...]]:
        table = self._table
        pairs: list[tuple[str, int]] = []
        for row, (docno, title, frontmatter) in enumerate(
            zip(table.docnos, table.titles, table.frontmatter, strict=True)
        ):
            parts = _fold(unquote(docno)).split("/")
            pairs += [("/".join(parts[start:]), row) for start in range(len(parts))]
            pairs += [(_fold(name), row) for name in (title, *read_metadata(frontmatter).aliases)]
        return _group_rows(pairs)


def _group_rows(pairs: Iterable[tuple[str, int]]) -> Mapping[str, tuple[int, ...]]:
    groups: dict[str, dict[int, None]] = {}
    for name, row in pairs:
        groups.setdefault(name, {})[row] = None
    return {name: tuple(rows) for name, rows in groups.items()}


def _fold(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


PART = Part("names", fingerprint=lambda index: index.collection, open=lambda index: TitleIndex(index.chunks))
