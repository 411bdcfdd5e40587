"""From a hit of another search to a chunk of the collection: by path, address, title or the words of its text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragbench.base import files
from ragbench.base.types import BenchmarkError, Document, LiveError, Section, why_unreadable
from ragbench.benchmark import lines
from ragbench.benchmark.names import Names
from ragbench.benchmark.phrases import words
from ragbench.benchmark.runs import read_run, trec_eval_order
from ragbench.corpus.sections import slug
from ragbench.index.chunks import ChunkTable

SHINGLE, ENOUGH = 4, 0.5
"""A text is placed in a chunk that contains at least half (`ENOUGH`) of its runs of four (`SHINGLE`) words."""

# Names whose documents are looked up once: a search names mostly the same ones.
_NAMES_KEPT = 1 << 14


@dataclass(frozen=True)
class LiveHit:
    """A hit of a live search: the path, address or title of a document, optionally a heading, a text and a score."""

    document: str
    section: str = ""
    text: str = ""
    score: float | None = None


class HitMatcher:
    """Finds the chunk of a table for a hit of a live search. `prefix` is cut from the paths of its addresses."""

    def __init__(self, table: ChunkTable, prefix: str = "") -> None:
        """The documents and chunks of a table."""
        self._table = table
        self._prefix = prefix.strip("/").casefold()
        self._document = lru_cache(_NAMES_KEPT)(self._named)

    @property
    def docnos(self) -> Sequence[str]:
        """The ids of the collection's documents."""
        return self._table.docnos

    def knows(self, name: str) -> bool:
        """Whether a name is, letter by letter, the id of a document."""
        return lines.identifier(name) in self._table.document_number

    def chunk(self, hit: LiveHit) -> int | None:
        """The number of the chunk, None when no document of the collection fits the hit.

        In the document that the hit names: the chunk that shares most of the hit's text, else the first of the section
        it names, else its first. A hit that names no document is placed by its text alone.
        """
        document = self._document(hit.document) if hit.document else None
        if document is None:
            return self._by_text(hit.text)
        first, stop = self._table.chunks_of(document)
        if first >= stop:
            return None
        if stop - first == 1:
            return first
        named = hit.section or urlsplit(hit.document).fragment
        shared = self._most_shared(hit.text, range(first, stop))
        section = self._in_section(document, named) if named else None
        return shared if shared is not None else section if section is not None else first

    def _named(self, name: str) -> int | None:
        """The row of a document by any name of `Names`, with the prefix and without it."""
        url = urlsplit(name.replace("\\", "/"))
        below = url.path.strip("/")
        if self._prefix and f"{below}/".casefold().startswith(f"{self._prefix}/"):
            below = below[len(self._prefix) :].strip("/")
        names = (name, url._replace(fragment="").geturl(), f"/{below}")
        docno = next(filter(None, map(self._names.document, names)), None)
        return None if docno is None else self._table.document_number[docno]

    def _in_section(self, document: int, heading: str) -> int | None:
        """The first chunk of the section with this heading, or this anchor on a site."""
        docno = self._table.docnos[document]
        names = (f"{docno}#{written}" for written in (heading, slug(heading.rpartition("/")[2])))
        section = next(filter(None, map(self._names.section, names)), None)
        return next((c for c in range(*self._table.chunks_of(document)) if section in self._table.section_ids[c]), None)

    def _by_text(self, text: str) -> int | None:
        shingles = _shingles(text)
        votes = Counter(chunk for shingle in shingles for chunk in self._chunks_by_shingle.get(shingle, ()))
        return _winner(votes, len(shingles))

    def _most_shared(self, text: str, chunks: Iterable[int]) -> int | None:
        shingles = _shingles(text)
        if not shingles:
            return None
        votes = Counter({chunk: len(shingles & _shingles(self._table.text(chunk))) for chunk in chunks})
        return _winner(votes, len(shingles))

    @cached_property
    def _names(self) -> Names:
        table = self._table
        columns = map(table.document_column, ("path", "anchors", "headings"))
        return Names(map(_page, table.docnos, table.titles, table.frontmatter, *columns))

    @cached_property
    def _chunks_by_shingle(self) -> Mapping[tuple[str, ...], Sequence[int]]:
        by_shingle: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for chunk, text in enumerate(self._table.texts(0, self._table.n_retrievable)):
            for shingle in _shingles(text):
                by_shingle[shingle].append(chunk)
        return by_shingle


def _page(
    docno: str, title: str, fields: Mapping[str, Any], path: str, anchors: Sequence[str], headings: Sequence[str]
) -> Document:
    """What a table knows of a document that people name it by."""
    sections = (
        Section(number, 1, (heading,) if heading else (), anchor, 0, 0)
        for number, (anchor, heading) in enumerate(zip(anchors, headings, strict=True))
    )
    return Document(docno, path, title, "", fields, tuple(sections), (), (), (), 0.0, 0, "")


def _shingles(text: str) -> set[tuple[str, ...]]:
    """The runs of four words of a text; all words as one run if there are fewer."""
    tokens = words(text)
    if len(tokens) < SHINGLE:
        return {tokens} if tokens else set()
    return {tokens[i : i + SHINGLE] for i in range(len(tokens) - SHINGLE + 1)}


def _winner(votes: Mapping[int, int], n_shingles: int) -> int | None:
    """The chunk with most votes, the first of equals; None when those are fewer than half of the shingles."""
    best = min(votes, key=lambda chunk: (-votes[chunk], chunk), default=None)
    return best if best is not None and votes[best] >= max(1, ENOUGH * n_shingles) else None


_Hits = Sequence[tuple[str, float]]


def read_run_file(path: str) -> Mapping[str, _Hits]:
    """By qid, (id, score) in the order of trec_eval. Raises LiveError for a file that is not a run."""
    return _read(path, _state(path))


def run_file_digest(path: str) -> str:
    """The digest of the file's bytes. Raises LiveError where there is none."""
    _state(path)
    return files.sha256(Path(path).expanduser())


def _state(path: str) -> tuple[int, int]:
    try:
        facts = Path(path).expanduser().stat()
    except OSError as error:
        raise LiveError(f"the run file {path} cannot be read ({why_unreadable(error)})") from None
    return facts.st_mtime_ns, facts.st_size


@lru_cache(maxsize=16)
def _read(path: str, state: tuple[int, int]) -> Mapping[str, _Hits]:
    try:
        return {qid: trec_eval_order(hits) for qid, hits in read_run(Path(path).expanduser()).items()}
    except BenchmarkError as error:
        raise LiveError(f"{error}; a run file has lines such as: q1 Q0 doc7 1 12.5 name") from None
