"""The terms of documents and chunks as numbers, so that a learned ranking reads no text at query time.

A word is a run of letters and digits, cut where letter case changes (`getUserById`: get, user, by, id). The analyzer
turns it into its first term; a stop word has none. The terms of a chunk's text are kept in order; of other fields only
the set of terms is kept. With analyzers of several languages, a word of a query has the one of its terms that most
documents hold. (Pairs of neighbours as words of Chinese and Japanese made the shipped ranker worse.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.index.analyzers import analyze, analyzer, analyzers, detection, document_analyzers
from ragbench.index.artefacts import check_ranges
from ragbench.index.chunks import ChunkTable
from ragbench.index.graph import edges_of
from ragbench.index.parts import StoredPart
from ragbench.index.texts import lexical_rows

VERSION = 4
FIELDS = ("title", "path", "anchors", "facts", "headings", "document")
"""Sets of terms: of a document, `headings` of a chunk; `facts` are aliases, tags, keywords and description."""
_OF_CHUNKS = ("headings",)
_STANDING = ("links-in", "links-out", "pagerank")
_LINKS = ("link-starts", "link-targets")
_FACTS = ("aliases", "tags", "keywords", "description")
_FOLLOWED, _SETTLED, _ITERATIONS = 0.85, 1e-6, 100  # of PageRank: links followed, change of a rank that ends it
_WORD = re.compile(r"[^\W_]+")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STOP = -2  # instead of the number of a term
_WORDS, _TERMS = "words.txt", "terms.txt"

_Numbers = NDArray[np.int64]


def _words(text: str) -> list[str]:
    """The words of a text in order, lower-case."""
    return _WORD.findall(_CASE.sub(" ", text).lower())


def build_terms(folder: Path, table: ChunkTable, analyzer_name: str) -> None:
    """Write the terms of every retrievable chunk, the sets of FIELDS, and the links and PageRank of documents."""
    number_of: dict[str, int] = {}
    numberings = {name: _Numbering(name, number_of) for name in analyzers(analyzer_name)}
    numbering_of = [numberings[name] for name in document_analyzers(analyzer_name, table)]
    body: list[_Numbers] = []
    pairs: dict[str, list[tuple[int, _Numbers]]] = {name: [] for name in FIELDS}
    previous = -1
    rows = lexical_rows(table, ("content", "headers", "title", "path", "anchors", *_FACTS))
    for chunk, row in enumerate(rows):
        document = int(table.document[chunk])
        numbering = numbering_of[document]
        body.append(numbering.terms(row["content"]))
        pairs["headings"].append((chunk, numbering.terms(row["headers"])))
        pairs["document"].append((document, body[-1]))
        if document != previous:
            previous = document
            for name in ("title", "path", "anchors"):
                pairs[name].append((document, numbering.terms(row[name])))
            pairs["facts"].append((document, numbering.terms(" ".join(row[name] for name in _FACTS))))
    size = len(number_of)
    _save(folder, "body", np.concatenate(body) if body else np.empty(0, np.int64), np.int32)
    _save(folder, "body-starts", np.concatenate([[0], np.cumsum([len(terms) for terms in body])]), np.int64)
    sets = {name: _keys(rows, size) for name, rows in pairs.items()}
    for name, keys in sets.items():
        _save(folder, name, keys, np.int64)
    frequencies = np.bincount(
        np.unique(np.concatenate(list(_by_document(sets, table, size)))) % max(size, 1), minlength=size
    )
    # The idf of BM25 (Robertson and Zaragoza, 2009), over documents.
    idf = np.log1p((table.n_documents - frequencies + 0.5) / (frequencies + 0.5))
    _save(folder, "idf", idf, np.float64)
    known = numbering_of[:1] if len(numberings) == 1 else []  # of a word in several languages, a term for each
    numbered = "".join(f"{word}\t{term}\n" for numbering in known for word, term in numbering.words.items())
    (folder / _WORDS).write_text(numbered, encoding="utf-8")
    (folder / _TERMS).write_text("".join(f"{term}\n" for term in number_of), encoding="utf-8")
    edges = edges_of(table)
    for name, values in _link_statistics(table, edges).items():
        _save(folder, name, values, np.float64)
    starts = np.searchsorted([source for source, _ in edges], np.arange(table.n_documents + 1))
    for name, numbers in zip(_LINKS, (starts, [target for _, target in edges]), strict=True):
        _save(folder, name, np.asarray(numbers), np.int64)


class _Numbering:
    """Gives words their terms by an analyzer, and terms numbers in the order of their first occurrence."""

    def __init__(self, analyzer_name: str, numbers: dict[str, int]) -> None:
        self._analyzer = analyzer(analyzer_name)
        self.words: dict[str, int] = {}
        self._numbers = numbers

    def terms(self, text: str) -> _Numbers:
        numbers = [self._number_of_word(word) for word in _words(text)]
        return np.array([number for number in numbers if number >= 0], dtype=np.int64)

    def _number_of_word(self, word: str) -> int:
        number = self.words.get(word)
        if number is None:
            terms = analyze(self._analyzer, word)
            number = self.words[word] = self._numbers.setdefault(terms[0], len(self._numbers)) if terms else _STOP
        return number


def _keys(pairs: Iterable[tuple[int, _Numbers]], size: int) -> _Numbers:
    """Row and term as one number, sorted, each once."""
    keys = [row * size + terms for row, terms in pairs]
    return np.unique(np.concatenate(keys)) if keys else np.empty(0, np.int64)


def _by_document(sets: dict[str, _Numbers], table: ChunkTable, size: int) -> Iterable[_Numbers]:
    """The keys of all fields by document."""
    for name, keys in sets.items():
        if name == "headings":
            rows, terms = np.divmod(keys, max(size, 1))
            yield table.document[rows].astype(np.int64) * size + terms
        else:
            yield keys


def _link_statistics(table: ChunkTable, edges: Sequence[tuple[int, int]]) -> dict[str, NDArray[np.float64]]:
    """Links into and out of each document, and its PageRank times the number of documents (Brin and Page, 1998)."""
    n = table.n_documents
    sources, targets = np.array(edges, dtype=np.intp).reshape(-1, 2).T
    links_in, links_out = (np.bincount(rows, minlength=n).astype(np.float64) for rows in (targets, sources))
    ranks = previous = np.ones(n)
    for _ in range(_ITERATIONS if edges else 0):
        share = np.divide(previous, links_out, out=np.zeros(n), where=links_out > 0)
        passed = np.bincount(targets, share[sources], minlength=n) + previous[links_out == 0].sum() / n
        ranks = _FOLLOWED * passed + 1 - _FOLLOWED
        if np.abs(ranks - previous).sum() < _SETTLED * n * n:
            break
        previous = ranks
    # Rounded: another machine may add in another order.
    return {"links-in": links_in, "links-out": links_out, "pagerank": ranks.round(6)}


def _save(folder: Path, name: str, values: NDArray[np.generic], kind: type) -> None:
    np.save(folder / f"{name}.npy", np.asarray(values, dtype=kind), allow_pickle=False)


class TermIndex:
    """Terms of documents and chunks."""

    def __init__(self, folder: Path, table: ChunkTable, analyzer_name: str) -> None:
        """Open the artefact in `folder`."""
        self._folder = folder
        self._table = table
        self._analyzers = analyzers(analyzer_name)
        self._body = np.asarray(np.load(folder / "body.npy", mmap_mode="r", allow_pickle=False))
        self._starts: _Numbers = self._load("body-starts")
        idf = self._load("idf")
        self._size = len(idf)
        # The last one is of the term -1, which no document holds: it counts as the rarest.
        self._idf: NDArray[np.float64] = np.append(idf, idf.max() if len(idf) else 1.0)

    def of(self, text: str) -> _Numbers:
        """The terms of a text in order, shape (m,): -1 for a term that no document holds; stop words are excluded."""
        found = (self._words[word] if word in self._words else self._number(word) for word in _words(text))
        return np.array([number for number in found if number != _STOP], dtype=np.int64)

    def _number(self, word: str) -> int:
        """The number of the term of a word that no document holds as it stands, as in `of`; _STOP for a stop word."""
        terms = [analyze(analyzer(name), word)[:1] for name in self._analyzers]
        numbers = (self._terms.get(term, -1) for (term,) in terms) if all(terms) else ()
        return min(numbers, key=lambda number: self._idf[number], default=_STOP)

    def idf(self, terms: _Numbers) -> NDArray[np.float64]:
        """The idf of each term, shape (m,); a term that no document holds counts as the rarest."""
        return self._idf[terms]

    def fields(
        self, documents: _Numbers, chunks: _Numbers, terms: _Numbers
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Whether each of FIELDS holds each term, shape (fields, n, m), and its number of terms, shape (fields, n).

        Fields are those of `documents`, `headings` those of `chunks`, both of shape (n,); a term -1 is nowhere.
        """
        keys, sizes = self._sets
        rows = np.array([chunks if name in _OF_CHUNKS else documents for name in FIELDS]) + self._first_rows[:-1, None]
        sought = rows[:, :, None] * self._size + terms
        return (keys[keys.searchsorted(sought)] == sought) & (terms >= 0), sizes[rows]

    def length(self, chunks: _Numbers) -> NDArray[np.float64]:
        """The terms of each chunk's text, shape (n,)."""
        return np.asarray(self._starts[chunks + 1] - self._starts[chunks], dtype=np.float64)

    def matches(self, chunks: _Numbers, terms: _Numbers, apart: int) -> tuple[_Numbers, _Numbers, _Numbers]:
        """Where `terms`, each once, stand in the texts of n chunks: which chunk, place, and which term, shapes (p,).

        Places count on from one text to the next, with `apart` places between them.
        """
        first, last = self._starts[chunks], self._starts[chunks + 1]
        texts = [self._body[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True)]
        positions = (terms >= 0).nonzero()[0]
        number = np.zeros(self._size, dtype=np.int32)  # of each term of the vocabulary, which of those it is, from 1
        number[terms[positions]] = np.arange(1, len(positions) + 1)
        numbers = number.take(np.concatenate(texts))
        places = numbers.nonzero()[0]
        ends: _Numbers = (last - first).cumsum()
        owner = ends.searchsorted(places, side="right")
        return owner, places + owner * apart, positions[numbers[places] - 1]

    def links_among(self, documents: _Numbers) -> tuple[_Numbers, _Numbers]:
        """The links between n different documents, by their places among these: from which and to which."""
        starts, targets = self._links
        counts = starts[documents + 1] - starts[documents]
        source = np.arange(len(documents)).repeat(counts)
        offsets = counts.cumsum() - counts
        row_of = np.full(self._table.n_documents, -1)
        row_of[documents] = np.arange(len(documents))
        target = row_of[targets[np.arange(len(source)) + (starts[documents] - offsets)[source]]]
        return source[target >= 0], target[target >= 0]

    @cached_property
    def standing(self) -> NDArray[np.float64]:
        """Of every document: its different terms, its chunks, folders above it, links to it, links from it, PageRank.

        Shape (6, documents).
        """
        row = self._first_rows[FIELDS.index("document")]
        sizes = self._sets[1][row : row + self._table.n_documents]
        first, last = self._table.ranges
        depths = [docno.count("/") for docno in self._table.docnos]
        return np.array([sizes, last - first, depths, *(self._load(name) for name in _STANDING)])

    @cached_property
    def _links(self) -> tuple[_Numbers, _Numbers]:
        starts, targets = map(self._load, _LINKS)
        check_ranges(starts, len(targets), self._folder)
        return starts, targets

    @cached_property
    def _words(self) -> dict[str, int]:
        lines = (self._folder / _WORDS).read_text(encoding="utf-8").split("\n")[:-1]
        pairs = (line.split("\t") for line in lines)
        return {word: int(number) for word, number in pairs}

    @cached_property
    def _terms(self) -> dict[str, int]:
        terms: Sequence[str] = (self._folder / _TERMS).read_text(encoding="utf-8").split("\n")[:-1]
        return {term: number for number, term in enumerate(terms)}

    @cached_property
    def _sets(self) -> tuple[_Numbers, NDArray[np.float64]]:
        """Row and term of all fields as one number, sorted; how many of each row. A last one is never looked for."""
        first = self._first_rows
        keys = [self._load(name) + row * self._size for name, row in zip(FIELDS, first[:-1], strict=True)]
        sorted_keys = np.concatenate([*keys, [np.iinfo(np.int64).max]])
        sizes = np.diff(np.searchsorted(sorted_keys, np.arange(first[-1] + 1) * self._size))
        return sorted_keys, sizes.astype(np.float64)

    @cached_property
    def _first_rows(self) -> _Numbers:
        """The first row of each field among those of all fields, and their number."""
        table = self._table
        return np.cumsum([0, *(table.n_retrievable if name in _OF_CHUNKS else table.n_documents for name in FIELDS)])

    def _load(self, name: str) -> NDArray[Any]:
        return np.asarray(np.load(self._folder / f"{name}.npy", allow_pickle=False))


PART = StoredPart(
    "terms",
    inputs=lambda index: [
        index.fingerprint("chunks"),
        index.spec.lexical.analyzer,
        VERSION,
        *detection(index.spec.lexical.analyzer),
    ],
    build=lambda folder, index: build_terms(folder, index.chunks, index.spec.lexical.analyzer),
    open=lambda folder, index: TermIndex(folder, index.chunks, index.spec.lexical.analyzer),
)
