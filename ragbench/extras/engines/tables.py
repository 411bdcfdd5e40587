"""A search in tables of SQL, as SQLite and PostgreSQL both have it: what is in them, and the statement that searches.

about        key and value: what it is, what was measured, the model, licences, digests
documents    docno, path, title, time, metadata (JSON)
chunks       chunk_id, headings (JSON), lines, text
vectors      the vector of each chunk, by its id
chunk_words, document_words    the terms of each chunk and document (`bm25f`)
chunk_terms, document_terms    idf and mean length
forms        the terms of every form of a word, to analyse queries without Lucene
files        the configuration, golden queries and what the learned order reads, for ragbench itself
"""

from __future__ import annotations

import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragbench.base.types import BundleError
from ragbench.extras.engines.content import DocumentRow, passage_key
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.engines.search import Vector, parse_errors, unzipped
from ragbench.extras.engines.words import Terms, postings, score
from ragbench.index.lexical import Bm25F

FORMAT = 2
"""Of the tables: an engine of another one is refused."""

COLUMNS: Mapping[str, Sequence[str]] = {
    "about": ("key", "value"),
    "files": ("name", "content"),
    "documents": ("id", "docno", "path", "title", "modified", "metadata", "digest"),
    "chunks": (
        *("id", "document", "chunk_id", "headings", "heading_level", "start_line", "end_line", "text", "passage"),
    ),
    "vectors": ("rowid", "vector"),
    "forms": ("form", "terms"),
    "chunk_words": ("term", "unit", "tf", "length", "fields"),
    "document_words": ("term", "unit", "tf", "length", "fields"),
    "chunk_terms": ("term", "idf", "mean"),
    "document_terms": ("term", "idf", "mean"),
}


def units(plan: SearchPlan) -> dict[str, Bm25F]:
    """How each unit is scored by its words."""
    return {
        name: scoring for name, scoring in (("chunk", plan.words), ("document", plan.wholes)) if scoring is not None
    }


def tables(plan: SearchPlan) -> list[str]:
    """The names of the tables that a plan needs."""
    names = ["about", "files", "documents", "chunks", "forms", *(["vectors"] if "dense" in plan.depths else [])]
    return names + [f"{unit}_{part}" for unit in units(plan) for part in ("words", "terms")]


@dataclass(frozen=True)
class Dialect:
    """What differs in the statement.

    `before`: common tables, among them `allowed (chunk)`, the chunks that may be found, and `asked (term, n)`. `free`:
    the condition that all chunks may be found. `nearest`: rows of chunk and cosine for the depth of the dense search.
    """

    before: Sequence[str]
    free: str
    nearest: Callable[[int], str]


def statement(plan: SearchPlan, dialect: Dialect) -> str:
    """The search as one statement: a row is a chunk with its fused score and its score in every source, best first."""
    parts, hits = list(dialect.before), []
    if "dense" in plan.depths:
        hits.append(("dense", dialect.nearest(plan.depths["dense"])))
    for unit, scoring in units(plan).items():
        source = {"chunk": "lexical", "document": "documents"}[unit]
        within = {
            "chunk": "SELECT chunk FROM allowed",
            "document": "SELECT document FROM chunks JOIN allowed ON chunk = id",
        }
        parts.append(
            f"{unit}s_by_words (unit, score) AS MATERIALIZED (\n"
            f"  SELECT p.unit, SUM(asked.n * {score('t', 'p', scoring)})\n"
            f"  FROM asked JOIN {unit}_terms AS t USING (term) JOIN {unit}_words AS p USING (term)\n"
            f"  WHERE {dialect.free} OR p.unit IN ({within[unit]})\n"
            f"  GROUP BY p.unit ORDER BY 2 DESC, 1 LIMIT {plan.depths[source]})"
        )
    if plan.words:
        hits.append(("lexical", "SELECT unit AS chunk, score FROM chunks_by_words"))
    if plan.wholes:
        of_chunks = "SELECT chunks.id AS chunk, score FROM documents_by_words JOIN chunks ON document = unit"
        hits.append(("documents", f"{of_chunks} WHERE {dialect.free} OR chunks.id IN (SELECT chunk FROM allowed)"))
    return _fused(plan, parts, hits)


def _fused(plan: SearchPlan, parts: Sequence[str], hits: Sequence[tuple[str, str]]) -> str:
    """The fusion of hits, rows of chunk and score by source.

    By min-max each source is scaled without window functions, which would sort and store all hits twice.
    """
    total, parts, scaled = sum(plan.weights[source] for source, _ in hits) or 1.0, list(parts), []
    for source, rows in hits:
        weight, rank_column = float(plan.weights[source]), f"{source}_found"
        parts.append(f"{rank_column} (chunk, score) AS MATERIALIZED (\n  {rows})")
        if plan.method == "rrf":
            value, tables = f"{weight!r} / ({plan.k:g} + DENSE_RANK() OVER (ORDER BY score DESC))", rank_column
        else:
            value = f"{weight!r} / {total:g} * CASE WHEN high > low THEN (score - low) / (high - low) ELSE 1 END"
            tables = (
                f"{rank_column}, (SELECT MIN(score) AS low, MAX(score) AS high FROM {rank_column}) AS {source}_bounds"
            )
        scaled.append(f"SELECT '{source}' AS source, chunk, score, {value} AS value FROM {tables}")
    scores = ", ".join(f"MAX(CASE WHEN source = '{source}' THEN score END) AS {source}" for source, _ in hits)
    return (
        "WITH "
        + ",\n".join([*parts, "hits AS (\n  {})".format("\n  UNION ALL ".join(scaled))])
        + f",\nfused AS (\n  SELECT chunk, SUM(value) AS score, {scores} FROM hits GROUP BY chunk)"
        + f"\nSELECT chunk_id, score, {', '.join(source for source, _ in hits)}\n"
        "FROM fused JOIN chunks ON chunks.id = chunk ORDER BY score DESC, chunks.id"
    )


def counting(plan: SearchPlan) -> list[str]:
    """The statements that renew what is counted over all units: the idf of every term, and the mean length.

    df is the largest number of units that hold the term in one field, N the largest number that hold any. SQLite must
    be given `ln` and `GREATEST`.
    """
    statements = []
    for unit, scoring in units(plan).items():
        bits = range(len(scoring.weights))
        maxima = ", ".join(f"MAX(fields >> {bit} & 1) AS f{bit}" for bit in bits)
        df = ", ".join(f"SUM(fields >> {bit} & 1)" for bit in bits)
        n = ", ".join(f"SUM(f{bit})" for bit in bits)
        statements += [
            f"DELETE FROM {unit}_terms",
            f"INSERT INTO {unit}_terms (term, idf, mean)\n"
            "  SELECT term, ln(1 + (n - df + 0.5) / (df + 0.5)), total / n FROM\n"
            f"  (SELECT term, CAST(GREATEST({df}) AS DOUBLE PRECISION) AS df FROM {unit}_words GROUP BY term) AS t,\n"
            f"  (SELECT CAST(GREATEST({n}) AS DOUBLE PRECISION) AS n, SUM(tf) AS total FROM\n"
            f"    (SELECT {maxima}, SUM(CAST(tf AS DOUBLE PRECISION)) AS tf FROM {unit}_words GROUP BY unit) AS u\n"
            "  ) AS of_all",
        ]
    return statements


class Tables(ABC):
    """Reads the tables; subclasses know how statements, with `?` for values, are sent."""

    about: Mapping[str, str]
    plan: SearchPlan

    @property
    @abstractmethod
    def name(self) -> str:
        """Where it is, for messages."""

    @abstractmethod
    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement returns. Raises BundleError."""

    @abstractmethod
    def execute(self, sql: str) -> None:
        """Send a statement without values. Raises BundleError."""

    @abstractmethod
    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows, with values as in `COLUMNS`."""

    @abstractmethod
    def delete(self, table: str, column: str, values: Collection[Any]) -> None:
        """Delete the rows that have one of the values."""

    @abstractmethod
    def among(self, column: str, values: Collection[Any]) -> tuple[str, Any]:
        """The condition that a column has one of the values, and the one value of the statement that it needs."""

    @abstractmethod
    def vector(self, value: Any) -> Vector:
        """A vector as it is stored."""

    @abstractmethod
    def json(self, value: Any) -> str:
        """A value as the text of a column of JSON."""

    @abstractmethod
    def seal(self) -> None:
        """Keep a digest over all tables in `about`; called when everything is written."""

    def read_about(self) -> None:
        """Read what it says about itself. Raises BundleError for tables that are not ours, or of another version."""
        try:
            self.about = dict(self.rows("SELECT key, value FROM about"))
            version, plan = int(self.about["format"]), self.about["plan"]
        except (BundleError, KeyError, TypeError, ValueError, OverflowError):
            raise BundleError(
                f"{self.name} is not a search that ragbench exported: make one with ragbench export"
            ) from None
        if version != FORMAT:
            raise BundleError(f"{self.name} is of another version of ragbench: export it again with this one")
        try:
            self.plan = SearchPlan.from_json(plan)
        except ValueError as error:
            raise BundleError(f"{self.name} cannot be read ({error}): export it again") from None

    @parse_errors
    def version(self) -> str:
        """A text that differs after every change of its content."""
        return str(dict(self.rows("SELECT key, value FROM about WHERE key = 'digest'")).get("digest"))

    @parse_errors
    def files(self) -> Mapping[str, bytes]:
        """The files for ragbench."""
        return {name: unzipped(body) for name, body in self.rows("SELECT name, content FROM files")}


class TableWriter:
    """Writes documents into tables, inside a transaction of them."""

    def __init__(self, tables: Tables) -> None:
        self._tables, self.name = tables, tables.name
        self._last_id: dict[str, int] = {}

    @parse_errors
    def digests(self) -> Mapping[str, str]:
        """The digest of every document's content by docno."""
        return dict(self._tables.rows("SELECT docno, digest FROM documents"))

    @parse_errors
    def vectors(self, keys: Collection[str]) -> Mapping[str, Vector]:
        """The vectors that are there of passages by their keys."""
        if "dense" not in self._tables.plan.depths:
            return {}
        condition, value = self._tables.among("passage", keys)
        joined = "SELECT passage, vector FROM chunks JOIN vectors ON vectors.rowid = chunks.id"
        rows = self._tables.rows(f"{joined} WHERE {condition}", (value,))
        return {key: self._tables.vector(body) for key, body in rows}

    def put(self, row: DocumentRow, vectors: Sequence[Vector | None], terms: Terms) -> None:
        """Write a document that is not there, and its chunks."""
        tables, plan, document = self._tables, self._tables.plan, self._next("documents")
        metadata = tables.json(row.metadata)
        tables.insert("documents", [(document, row.docno, row.path, row.title, row.modified, metadata, row.digest)])
        if plan.wholes:
            self._put_words("document", document, plan.wholes, row.fields, terms)
        for chunk, vector in zip(row.chunks, vectors, strict=True):
            number = self._next("chunks")
            lines = (chunk.heading_level, chunk.start_line, chunk.end_line)
            texts = (chunk.text, passage_key(chunk.passage))
            tables.insert("chunks", [(number, document, chunk.chunk_id, tables.json(chunk.headings), *lines, *texts)])
            if plan.words:
                self._put_words("chunk", number, plan.words, chunk.fields, terms)
            if vector is not None:
                tables.insert("vectors", [(number, vector)])

    def drop(self, docno: str) -> None:
        """Remove a document, if it is there."""
        tables = self._tables
        documents = [number for (number,) in tables.rows("SELECT id FROM documents WHERE docno = ?", (docno,))]
        for document in documents:
            chunks = [number for (number,) in tables.rows("SELECT id FROM chunks WHERE document = ?", (document,))]
            if "dense" in tables.plan.depths:
                tables.delete("vectors", "rowid", chunks)
            for unit, numbers in (("chunk", chunks), ("document", documents)):
                if unit in units(tables.plan):
                    tables.delete(f"{unit}_words", "unit", numbers)
            tables.delete("chunks", "id", chunks)
        tables.delete("documents", "id", documents)

    def finish(
        self, forms: Mapping[str, Sequence[str]], files: Mapping[str, bytes] | None, facts: Mapping[str, Any]
    ) -> None:
        """Add forms, replace the files, set values of `facts`, renew what is counted over all documents."""
        tables = self._tables
        tables.delete("forms", "form", forms)
        tables.insert("forms", ((form, " ".join(terms)) for form, terms in forms.items()))
        if files is not None:
            tables.execute("DELETE FROM files")
            tables.insert("files", ((name, zlib.compress(body)) for name, body in files.items()))
        for sql in counting(tables.plan):
            tables.execute(sql)
        tables.delete("about", "key", facts)
        tables.insert("about", about_rows(facts))
        tables.seal()

    def _put_words(self, unit: str, number: int, scoring: Bm25F, texts: Mapping[str, str], terms: Terms) -> None:
        rows = ((p.term, number, p.tf, p.length, p.fields) for p in postings(texts, scoring, terms))
        self._tables.insert(f"{unit}_words", rows)

    def _next(self, table: str) -> int:
        """A new id; the ids are read once."""
        if table not in self._last_id:
            ((self._last_id[table],),) = self._tables.rows(f"SELECT COALESCE(MAX(id), 0) FROM {table}")
        self._last_id[table] += 1
        return self._last_id[table]


def about_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts as rows of the table `about`."""
    return [(key, value if isinstance(value, str) else json.dumps(value)) for key, value in facts.items()]
