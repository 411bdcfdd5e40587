"""The lexical artefact: a Lucene index of the chunks' fields, scored by BM25F.

BM25F adds up a term's occurrences over all fields, each times the weight of its field, before the saturation of BM25:
score = idf * tf / (tf + k1 * (1 - b + b * length / mean length)), tf and length weighted alike (Robertson et al., CIKM
2004). In Lucene that is one `CombinedFieldQuery` for each term; several terms in one would count as synonyms. Lucene's
idf is ln(1 + (N - n + 0.5) / (n + 0.5)), n the largest number of chunks that hold the term in one field; it keeps
lengths in one byte, exactly up to 40 terms, rounded down by less than an eighth above.

The files depend on the field names and the analyzer only; weights, k1 and b act when the index is searched. Lucene's
document numbers are the chunk numbers (rows are added in order, only neighbours are merged, every build is verified),
so Lucene's own order of ties is the order by chunk number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base import progress
from ragbench.base.options import Constraint, Positive, Share, Validated, Weight, section
from ragbench.base.query_cache import QueryCache
from ragbench.base.rankings import Ranking
from ragbench.base.types import ConfigError, IndexError_
from ragbench.index.analyzers import (
    ANALYZERS,
    analyze,
    analyzer,
    analyzers,
    detection,
    document_analyzers,
    is_analyzer,
    java_text,
    query_terms,
)
from ragbench.index.jvm import java, java_errors, lucene
from ragbench.index.parts import StoredPart, with_rows
from ragbench.index.texts import FIELDS, Unit, lexical_rows

if TYPE_CHECKING:
    from ragbench.index.chunks import ChunkTable
    from ragbench.index.index import Index

VERSION = 6
_NUMBER = "#"  # doc values that hold the chunk number
_ALL_WORDS = "*"  # field of titles and headings with their stop words, for queries of nothing else
_ANALYZER = "+"  # key of a row with the analyzer of its fields, where it is not that of the index
_LAYOUT = "ragbench"  # key of the commit's user data that holds the layout of the artefact
_RAM_BUFFER_MB = 64.0
_CLAUSES_KEPT = 4096  # terms; the clause of one costs 0.06 ms to make with eight fields
_MASKS_KEPT = 64
_HIT = re.compile(r"doc=(\d+) score=(\S+) ")


_ANALYZER_RULE = (
    f"must be one of {', '.join(ANALYZERS)}, or several for documents in several languages (german+technical)"
)


@section("index.lexical")
@dataclass(frozen=True)
class LexicalSpec(Validated):
    """The indexed `fields`, and the `analyzer` of all of them (`ragbench.index.analyzers`).

    `german+technical` analyses each document by its language, and queries by both.
    `unit`: `chunk`, or `document` for one entry per document with all of its text; then "chunk" in this module means
    document.
    """

    fields: tuple[str, ...] = FIELDS
    analyzer: Annotated[str, Constraint(is_analyzer, _ANALYZER_RULE)] = "english"
    unit: Unit = "chunk"  # what is indexed: chunk or document


@dataclass(frozen=True)
class Bm25F(Validated):
    """How chunks are scored: the weight of every field that is searched (above 0), `k1` (0 or more), `b` (0 to 1)."""

    weights: tuple[tuple[str, Positive], ...] = (("content", 1.0),)
    k1: Weight = 0.9
    b: Share = 0.4

    @cached_property
    def scaled(self) -> tuple[list[tuple[str, float]], float]:
        """Weights and k1 as Lucene accepts them. Multiplying both by one number changes no score.

        `CombinedFieldQuery` refuses weights below 1, and a single field is searched without a weight.
        """
        smallest = min(weight for _, weight in self.weights)
        scale = 1 / smallest if smallest < 1 or len(self.weights) == 1 else 1.0
        return [(name, max(1.0, weight * scale)) for name, weight in self.weights], self.k1 * scale


_CONTENT = Bm25F()


def build_lexical(
    folder: Path,
    spec: LexicalSpec,
    rows: Iterable[Mapping[str, str] | None],
    notes: Mapping[str, str] = MappingProxyType({}),
    number: int = 0,
) -> None:
    """Write the index of `rows` into `folder`: field -> text for chunk 0, 1, 2 ...; a row None is never found.

    Fields that the specification does not name are ignored, missing ones are empty. `notes` are texts to keep with
    the index (`LexicalIndex.notes`). `number` is the number of the first chunk, not
    0 for a part that `merge_lexical` will merge. Raises `IndexError_` when the folder cannot be written.
    """

    def add(writer: Any) -> int:
        return _add_rows(writer, list(spec.fields), rows, number)

    _write(folder, spec, add, notes, number)


def merge_lexical(folder: Path, spec: LexicalSpec, parts: Sequence[Path]) -> None:
    """Merge several indexes, whose chunk numbers continue from one to the next, into one in `folder`.

    The result equals an index built from all their rows at once. Raises `IndexError_` as `build_lexical` does.
    """

    def add(writer: Any) -> int:
        import jnius

        with ExitStack() as opened:
            sources = [_directory(part) for part in parts]
            for source in sources:
                opened.callback(source.close)
            jnius.cast(lucene().Merging, writer).addIndexes(sources)
        return int(writer.getDocStats().maxDoc)

    _write(folder, spec, add, {}, 0)


def _write(folder: Path, spec: LexicalSpec, add: Callable[[Any], int], notes: Mapping[str, str], number: int) -> None:
    """Make a new index: `add` adds the chunks, then all become one segment, notes are stored and numbers checked."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise IndexError_(f"cannot make the folder {folder} for an index: {cause.strerror}") from cause
    with java_errors(IndexError_, lambda cause: f"Lucene could not write an index into {folder} ({cause})"):
        directory = _directory(folder)
        try:
            writer = _writer(directory, spec.analyzer)
            try:
                n_chunks = add(writer)
                writer.forceMerge(1)
                user_data = java("java.util.HashMap")()
                for key, value in {**notes, _LAYOUT: _layout(spec)}.items():
                    user_data.put(key, value)
                writer.setLiveCommitData(user_data.entrySet())
                writer.commit()
            except BaseException:
                writer.rollback()
                raise
            writer.close()
            _verify_numbers(directory, number, n_chunks, folder)
        finally:
            directory.close()


def _directory(folder: Path) -> Any:
    """A folder for Lucene. No lock file: the builder holds the artefact's lock, and a finished index never changes."""
    no_locks = java("org.apache.lucene.store.NoLockFactory").INSTANCE
    path = str(folder.absolute())  # Java resolves a relative one from the folder in which it was started
    return java("org.apache.lucene.store.FSDirectory").open(java("java.nio.file.Paths").get(path), no_locks)


def _writer(directory: Any, analyzer_name: str) -> Any:
    by_field = java("java.util.HashMap")()
    by_field.put(_ALL_WORDS, _analyzer_of_all_words())
    wrapper = java("org.apache.lucene.analysis.miscellaneous.PerFieldAnalyzerWrapper")
    config = java("org.apache.lucene.index.IndexWriterConfig")(wrapper(analyzer(analyzers(analyzer_name)[0]), by_field))
    merges = java("org.apache.lucene.index.LogDocMergePolicy")()  # merges neighbours only
    merges.setNoCFSRatio(0.0)
    config.setMergePolicy(merges)
    config.setMergeScheduler(java("org.apache.lucene.index.SerialMergeScheduler")())
    config.setRAMBufferSizeMB(_RAM_BUFFER_MB)
    config.setUseCompoundFile(False)
    config.setOpenMode(java("org.apache.lucene.index.IndexWriterConfig$OpenMode").CREATE)
    return java("org.apache.lucene.index.IndexWriter")(directory, config)


@cache
def _analyzer_of_all_words() -> Any:
    return java("org.apache.lucene.analysis.standard.StandardAnalyzer")()


def _add_rows(writer: Any, names: list[str], rows: Iterable[Mapping[str, str] | None], first: int) -> int:
    """Add every row as a document and count them; one document object and its fields are used for all rows."""
    searched, hidden = (java("org.apache.lucene.document.Document")() for _ in range(2))
    number = java("org.apache.lucene.document.NumericDocValuesField")(_NUMBER, 0)
    searched.add(number)
    hidden.add(number)
    counted = java("org.apache.lucene.document.FieldType")()
    counted.setTokenized(True)
    counted.setIndexOptions(java("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS)
    counted.freeze()
    fields = {name: lucene().Field(name, "", counted) for name in (*names, _ALL_WORDS)}
    named = [name for name in ("title", "headers") if name in names]
    for field in fields.values():
        searched.add(field)
    n_chunks = 0
    for row in rows:
        number.setLongValue(first + n_chunks)
        if row is None:
            writer.addDocument(hidden)
        else:
            texts = {**row, _ALL_WORDS: " \n".join(row.get(name) or "" for name in named)}
            for name, field in fields.items():
                text = java_text(texts.get(name) or "")
                field.setStringValue(text)
                if _ANALYZER in row and name != _ALL_WORDS:
                    field.setTokenStream(analyzer(row[_ANALYZER], purpose=name).tokenStream(name, text))
            writer.addDocument(searched)
        n_chunks += 1
    return n_chunks


def _verify_numbers(directory: Any, first: int, n_chunks: int, folder: Path) -> None:
    reader = java("org.apache.lucene.index.DirectoryReader").open(directory)
    try:
        numbers = java("org.apache.lucene.index.MultiDocValues").getNumericValues(reader, _NUMBER)
        consistent = (
            reader.maxDoc() == n_chunks
            and reader.leaves().size() <= 1
            and all(numbers.nextDoc() + first == numbers.longValue() == first + n for n in range(n_chunks))
        )
    finally:
        reader.close()
    if not consistent:
        raise IndexError_(f"Lucene changed the order of the chunks in {folder}; report this to ragbench's authors")


def _layout(spec: LexicalSpec) -> str:
    """The settings that the files depend on, in one line."""
    return f"version {VERSION}, analyzer {spec.analyzer}, fields {' '.join(sorted(spec.fields))}"


class LexicalIndex:
    """Search of chunks by their words. Threads may share it; chunks of equal score are in the order of numbers."""

    def __init__(
        self, folder: Path, spec: LexicalSpec, scoring: Bm25F = _CONTENT, memory: QueryCache | None = None
    ) -> None:
        """Open the artefact in `folder`; `IndexError_` when it is missing, damaged, foreign or of another layout.

        `memory` keeps the clauses of the latest terms.
        """
        if not folder.is_dir():  # Lucene would make the folder
            raise IndexError_(f"no lexical index in {folder}; build it first")
        self.spec = spec
        self.folder = folder
        self._closed = Event()
        self._memory = memory or QueryCache()
        self._restriction = lru_cache(_MASKS_KEPT)(self._new_restriction)
        with self._errors():
            self._directory = _directory(folder)
            try:
                self._reader = java("org.apache.lucene.index.DirectoryReader").open(self._directory)
            except BaseException:
                self._directory.close()
                raise
            user_data = self._reader.getIndexCommit().getUserData()
            self.notes: Mapping[str, str] = {key: user_data.get(key) for key in user_data.keySet().toArray()}
            self._n_chunks: int = self._reader.maxDoc()
            lucene().IndexSearcher.setMaxClauseCount(2**31 - 1)
        self._set_scoring(scoring)
        if (layout := self.notes.get(_LAYOUT)) != _layout(spec):
            self.close()
            raise IndexError_(
                f"the Lucene index in {folder} has {layout or 'a foreign layout'}, not {_layout(spec)}; build it again"
            )

    def __len__(self) -> int:
        return self._n_chunks

    def with_scoring(self, scoring: Bm25F) -> LexicalIndex:
        """The same open index with other weights, k1 and b."""
        if scoring not in self._views:
            view = copy(self)
            view._set_scoring(scoring)
            self._views[scoring] = view
        return self._views[scoring]

    def _set_scoring(self, scoring: Bm25F) -> None:
        for name, _ in scoring.weights:
            if name not in self.spec.fields:
                raise ConfigError(f"unknown field '{name}' to search; the fields are {', '.join(self.spec.fields)}")
        self._weights, k1 = scoring.scaled
        with self._errors():
            self._searcher = lucene().IndexSearcher(self._reader)
            self._searcher.setSimilarity(java("org.apache.lucene.search.similarities.BM25Similarity")(k1, scoring.b))
        self._clause = self._memory.keep(self._new_clause, _CLAUSES_KEPT)
        self._views: dict[Bm25F, LexicalIndex] = {scoring: self}

    def terms(self, text: str) -> list[str]:
        """The terms of a text, by the analyzer."""
        return query_terms(self.spec.analyzer, text)

    def search(self, text: str, depth: int, allowed: NDArray[np.bool_] | None = None) -> Ranking:
        """The `depth` (at least 1) best chunks that hold any term of the text; a term counts as often as it occurs.

        `allowed`, shape (n_chunks,) or longer, restricts the search itself: `depth` chunks are found if that many
        match. A text of stop words only is searched in titles and headings.
        """
        if terms := Counter(self.terms(text)):
            return self.search_terms(terms, depth, allowed)
        terms = Counter(analyze(_analyzer_of_all_words(), text))
        return self.search_terms(terms, depth, allowed, clause=partial(_term_query, _ALL_WORDS))

    def search_terms(
        self,
        weights: Mapping[str, float],
        depth: int,
        allowed: NDArray[np.bool_] | None = None,
        at_least: int = 1,
        clause: Callable[[str], Any] | None = None,
    ) -> Ranking:
        """As `search`, for terms of the analyzer, each with a factor above 0 for its score.

        A chunk must hold at least `at_least` (1 or more) different terms. `clause` makes the query of a term (default:
        that of the weighted fields).
        """
        if depth < 1:
            raise ConfigError(f"depth must be at least 1, got {depth}")
        mask = self._checked_mask(allowed)
        with self._errors():
            self._must_be_open()
            if not weights or (mask is not None and not mask.any()) or not self._n_chunks:
                return Ranking.empty()
            query = _any_of(weights, clause or self._clause, at_least)
            if mask is not None and not mask.all():
                query = _restricted_query(query, self._restriction(np.packbits(mask).tobytes()))
            numbers, scores = self._search_hits(query, depth)
        return Ranking.ordered(numbers, scores)

    def _search_hits(self, query: Any, depth: int) -> tuple[list[int], list[float]]:
        """Numbers and scores of the best chunks. One call returns all as text, four times as fast as a call per hit."""
        top = self._searcher.search(query, min(depth, self._n_chunks))
        hits = _HIT.findall(lucene().ToStringBuilder.reflectionToString(top))
        return [int(number) for number, _ in hits], [float(score) for _, score in hits]

    def check(self) -> None:
        """Compare every file with its checksum (Lucene's CheckIndex); `IndexError_` names the first damaged one."""
        with self._errors():
            self._must_be_open()
            checker = java("org.apache.lucene.index.CheckIndex")(self._directory)
            try:
                checker.setChecksumsOnly(True)
                checker.setFailFast(True)
                checker.setThreadCount(1)
                clean = checker.checkIndex().clean
            finally:
                checker.close()
        if not clean:
            raise IndexError_(f"the Lucene index in {self.folder} is damaged; delete the folder and build it again")

    def close(self) -> None:
        """Close the files; later searches fail."""
        if not self._closed.is_set():
            self._closed.set()
            self._restriction.cache_clear()
            with self._errors():
                self._reader.close()
                self._directory.close()

    def _errors(self) -> AbstractContextManager[None]:
        remedy = "delete the folder and build it again"

        def sentence(cause: str) -> str:
            if cause.startswith("IndexNotFound"):
                return f"no Lucene index in {self.folder}; build it first"
            if cause.startswith("IndexFormatToo"):
                return f"the Lucene index in {self.folder} is of another version of Lucene ({cause}); {remedy}"
            return f"the Lucene index in {self.folder} is damaged ({cause}); {remedy}"

        return java_errors(IndexError_, sentence)

    def _must_be_open(self) -> None:
        if self._closed.is_set():
            raise IndexError_(f"the lexical index in {self.folder} is closed; open it again")

    def _checked_mask(self, allowed: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        if allowed is not None and len(allowed) < self._n_chunks:
            raise IndexError_(f"a mask of {len(allowed)} chunks is too short for the {self._n_chunks} in {self.folder}")
        return None if allowed is None else np.asarray(allowed[: self._n_chunks], dtype=bool)

    def _new_clause(self, term: str) -> Any:
        if len(self._weights) == 1:
            return _term_query(self._weights[0][0], term)
        builder = lucene().CombinedFieldBuilder()
        for name, weight in self._weights:
            builder.addField(name, weight)
        builder.addTerm(lucene().BytesRef(term.encode()))
        return builder.build()

    def _new_restriction(self, mask: bytes) -> Any:
        return _query_for_chunks(np.flatnonzero(np.unpackbits(np.frombuffer(mask, np.uint8), count=self._n_chunks)))


def _any_of(weights: Mapping[str, float], clause_of: Callable[[str], Any], at_least: int) -> Any:
    """A query that finds what holds at least so many of the terms, each with a factor for its score."""
    should = java("org.apache.lucene.search.BooleanClause$Occur").SHOULD
    builder = lucene().BooleanBuilder()
    for term, weight in weights.items():
        clause = clause_of(term)
        builder.add(clause if weight == 1 else lucene().BoostQuery(clause, float(weight)), should)
    if at_least > 1:
        builder.setMinimumNumberShouldMatch(at_least)
    return builder.build()


def _term_query(field: str, term: str) -> Any:
    return java("org.apache.lucene.search.TermQuery")(lucene().Term(field, term))


def _query_for_chunks(chunks: NDArray[Any]) -> Any:
    """A query that finds these chunks; slow at first use, then Lucene keeps the result as bits."""
    return java("org.apache.lucene.document.NumericDocValuesField").newSlowSetQuery(_NUMBER, *chunks.tolist())


def _restricted_query(query: Any, restriction: Any) -> Any:
    """A query with the same scores, restricted to the chunks that another query finds."""
    occur = java("org.apache.lucene.search.BooleanClause$Occur")
    builder = lucene().BooleanBuilder()
    builder.add(query, occur.MUST)
    builder.add(restriction, occur.FILTER)
    return builder.build()


def indexed_rows(table: ChunkTable, spec: LexicalSpec) -> Iterator[Mapping[str, str]]:
    """The rows of a table to index, each with the analyzer of its document where there are several."""
    rows = lexical_rows(table, spec.fields, spec.unit)
    if len(analyzers(spec.analyzer)) == 1:
        yield from rows
        return
    names = document_analyzers(spec.analyzer, table)
    documents = range(table.n_documents) if spec.unit == "document" else table.document[: table.n_retrievable]
    for document, row in zip(documents, rows, strict=True):
        yield {**row, _ANALYZER: names[document]}


def lexical_part(suffix: str) -> StoredPart[LexicalIndex]:
    """Words, scored by BM25F."""
    source = suffix.removeprefix(":")

    def rows_of(index: Index) -> int:
        return index.chunks.n_retrievable if index.spec.words(source).unit == "chunk" else index.chunks.n_documents

    def build(folder: Path, index: Index) -> None:
        spec = index.spec.words(source)
        rows = indexed_rows(index.chunks, spec)
        build_lexical(folder, spec, progress.counted("indexing terms", rows, rows_of(index)))

    return StoredPart(
        f"lexical{suffix}",
        inputs=lambda index: [
            index.fingerprint("chunks"),
            VERSION,
            index.spec.words(source),
            *detection(index.spec.words(source).analyzer),
        ],
        build=build,
        open=lambda folder, index: with_rows(
            LexicalIndex(folder, index.spec.words(source), memory=index.memory), rows_of(index), folder
        ),
    )
