"""A search in one SQLite file: vectors by sqlite-vec, BM25F as rows, and one statement that searches and fuses.

    about        key and value: what it is, what was measured, the statement, the model, licences, digests
    documents    docno, path, title, time, metadata (JSON)
    chunks       chunk_id, headings (JSON), lines, text
    vectors      sqlite-vec: the vector of each chunk, by its id
    chunk_words, document_words    the terms of each chunk and document (`bm25f`)
    chunk_terms, document_terms    idf and mean length
    forms        the terms of every form of a word, to analyse queries without Lucene
    files        the configuration, golden queries and what the learned order reads, for ragbench itself

FTS5 is not used: its bm25 has k1 and b of its own, another length and another idf, and lost 0.005 of nDCG@10.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ragbench.base.errors import BundleError, ConfigError
from ragbench.export.engines.bm25f import postings, score, statistics
from ragbench.export.engines.content import DocumentRow, passage_key
from ragbench.export.engines.plan import Plan
from ragbench.export.engines.search import Found, Vector
from ragbench.export.engines.words import Terms, query_terms
from ragbench.index.lexical import Bm25F

FORMAT = 1
MAGIC = b"SQLite format 3\0"
_SCHEMA = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (name TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (id INTEGER PRIMARY KEY, docno TEXT NOT NULL UNIQUE, path TEXT NOT NULL, title TEXT NOT NULL,
  modified REAL NOT NULL, metadata TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE chunks (id INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents, chunk_id TEXT NOT NULL
  UNIQUE, headings TEXT NOT NULL, heading_level INTEGER NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT
  NULL, text TEXT NOT NULL, passage TEXT NOT NULL);
CREATE INDEX chunks_of_documents ON chunks (document);
CREATE TABLE forms (form TEXT PRIMARY KEY, terms TEXT NOT NULL) WITHOUT ROWID;
"""


def schema(plan: Plan, dimension: int) -> str:
    """The statements that make the tables."""
    found = _SCHEMA
    for unit in units(plan):
        found += (
            f"CREATE TABLE {unit}_words (term TEXT NOT NULL, unit INTEGER NOT NULL, tf REAL NOT NULL, "
            "length INTEGER NOT NULL, fields INTEGER NOT NULL, PRIMARY KEY (term, unit)) WITHOUT ROWID;\n"
            f"CREATE TABLE {unit}_terms (term TEXT PRIMARY KEY, idf REAL NOT NULL, mean REAL NOT NULL) WITHOUT ROWID;\n"
        )
    if "dense" in plan.depths:
        found += f"CREATE VIRTUAL TABLE vectors USING vec0(vector float[{dimension}] distance_metric=cosine);\n"
    return found


def units(plan: Plan) -> dict[str, Bm25F]:
    """How each unit is scored by its words."""
    return {name: each for name, each in (("chunk", plan.words), ("document", plan.wholes)) if each is not None}


def statement(plan: Plan) -> str:
    """The search as one statement.

    `:terms` is a JSON object with the number of each term of the query; `:vector` the query's vector, float32 as bytes;
    `:only` a JSON list of the chunk ids that may be found, or NULL. A row is a chunk with its fused score and its score
    in every source that found it, best first.
    """
    parts = [
        "allowed (chunk) AS MATERIALIZED (\n"
        "  SELECT id FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(:only)))",
        "asked (term, n) AS MATERIALIZED (SELECT key, value FROM json_each(:terms))",
    ]
    hits = []
    if "dense" in plan.depths:
        nearest = f"SELECT rowid, 1 - distance FROM vectors WHERE vector MATCH :vector AND k = {plan.depths['dense']}"
        parts.append(
            f"dense (chunk, score) AS MATERIALIZED (\n  {nearest} AND :only IS NULL\n"
            f"  UNION ALL {nearest} AND :only IS NOT NULL AND rowid IN (SELECT chunk FROM allowed))"
        )
        hits.append(("dense", "SELECT chunk, score FROM dense"))
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
            f"  WHERE :only IS NULL OR p.unit IN ({within[unit]})\n"
            f"  GROUP BY p.unit ORDER BY 2 DESC, 1 LIMIT {plan.depths[source]})"
        )
    if plan.words:
        hits.append(("lexical", "SELECT unit AS chunk, score FROM chunks_by_words"))
    if plan.wholes:
        of_chunks = "SELECT chunks.id AS chunk, score FROM documents_by_words JOIN chunks ON document = unit"
        hits.append(("documents", f"{of_chunks} WHERE :only IS NULL OR chunks.id IN (SELECT chunk FROM allowed)"))
    return fused(plan, parts, hits)


def fused(plan: Plan, parts: Sequence[str], hits: Sequence[tuple[str, str]]) -> str:
    """The fusion of hits, rows of chunk and score by source; also PostgreSQL reads it."""
    total = sum(plan.weights[source] for source, _ in hits) or 1.0
    each = "\n  UNION ALL ".join(
        f"SELECT '{source}' AS source, {plan.weights[source]:g} AS weight, chunk, score FROM ({rows}) AS {source}_hits"
        for source, rows in hits
    )
    if plan.method == "rrf":
        by = "DENSE_RANK() OVER (PARTITION BY source ORDER BY score DESC)"
        scaled = f"SELECT *, weight / ({plan.k:g} + {by}) AS value FROM hits"
    else:
        window = "OVER (PARTITION BY source)"
        low, high = f"MIN(score) {window}", f"MAX(score) {window}"
        value = f"CASE WHEN {high} > {low} THEN (score - {low}) / ({high} - {low}) ELSE 1 END"
        scaled = f"SELECT *, weight / {total:g} * {value} AS value FROM hits"
    scores = ", ".join(f"MAX(CASE WHEN source = '{source}' THEN score END) AS {source}" for source, _ in hits)
    return (
        "WITH "
        + ",\n".join([*parts, f"hits AS (\n  {each})", f"scaled AS (\n  {scaled})"])
        + f"\nSELECT chunk_id, SUM(value) AS score, {scores}\nFROM scaled JOIN chunks ON chunks.id = scaled.chunk\n"
        "GROUP BY chunk_id, chunks.id ORDER BY score DESC, chunks.id"
    )


def connect(path: Path, read_only: bool = False) -> sqlite3.Connection:
    """An open file with sqlite-vec. Raises BundleError when it cannot be opened, ConfigError without sqlite-vec."""
    try:
        import sqlite_vec
    except ImportError:
        raise ConfigError("SQLite files need sqlite-vec: pip install 'ragbench[engines]'") from None
    address = f"{path.absolute().as_uri()}{'?mode=ro' if read_only else ''}"
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        _load_for_all(sqlite_vec.loadable_path())
    try:
        db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=30.0)
    except sqlite3.Error as error:
        raise BundleError(
            f"{path} cannot be opened ({error}): name a file of ragbench export --format sqlite"
        ) from None
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        db.enable_load_extension(True)
        sqlite_vec.load(db)
        db.enable_load_extension(False)
    return db


def _load_for_all(extension: str) -> None:
    """Load an extension into every connection: this Python's sqlite3 was built without loading them one by one."""
    import _sqlite3

    library = ctypes.CDLL(_sqlite3.__file__)
    if not hasattr(library, "sqlite3_auto_extension"):
        raise ConfigError(
            "this Python's sqlite3 cannot load extensions: use one built with --enable-loadable-sqlite-extensions"
        )
    suffix = next(end for end in ("", ".so", ".dylib", ".dll") if Path(extension + end).is_file())
    library.sqlite3_auto_extension(ctypes.CDLL(extension + suffix).sqlite3_vec_init)


class SqliteEngine:
    """An open file. Threads may share it; every search sees one state of the file, and so do writers of it."""

    def __init__(self, path: Path, writable: bool = False) -> None:
        self._path, self._lock = path, threading.RLock()
        self._db = connect(path, read_only=not writable)
        try:
            self.about: Mapping[str, str] = dict(self._db.execute("SELECT key, value FROM about"))
            if int(self.about["format"]) != FORMAT:
                raise BundleError(f"{path} is of another version of ragbench: export it again with this one")
            self._plan = Plan.from_json(self.about["plan"])
            self._statement = self.about["search"]
        except (sqlite3.Error, KeyError, ValueError) as error:
            self._db.close()
            raise BundleError(
                f"{path} is not a search that ragbench exported ({error}): make one with ragbench export "
                "--format sqlite"
            ) from None
        except BaseException:
            self._db.close()
            raise

    @staticmethod
    def create(path: Path, plan: Plan, dimension: int, about: Mapping[str, Any]) -> SqliteEngine:
        """A new file with empty tables."""
        with closing(connect(path)) as db:
            db.executescript(schema(plan, dimension))
            rows = {"format": FORMAT, **about, "plan": plan.to_json(), "search": statement(plan)}
            db.executemany("INSERT INTO about VALUES (?, ?)", ((key, as_text(value)) for key, value in rows.items()))
        return SqliteEngine(path, writable=True)

    @property
    def name(self) -> str:
        """The file."""
        return str(self._path)

    @property
    def plan(self) -> Plan:
        """What it searches."""
        return self._plan

    def files(self) -> Mapping[str, bytes]:
        """The files for ragbench."""
        return {name: zlib.decompress(body) for name, body in self._rows("SELECT name, content FROM files")}

    def ask(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Sequence[Found]:
        """Send the statement."""
        terms = query_terms(text, self._look_up)
        values = {
            "terms": json.dumps(terms),
            "vector": None if vector is None else np.asarray(vector, np.float32).tobytes(),
            "only": None if only is None else json.dumps(list(only)),
        }
        return [found_of(row) for row in self._rows(self._statement, values, names=True)]

    def _look_up(self, forms: Iterable[str]) -> Mapping[str, str]:
        asked = "SELECT form, terms FROM forms WHERE form IN (SELECT value FROM json_each(?))"
        return dict(self._rows(asked, (json.dumps(sorted(forms)),)))

    def _rows(self, sql: str, values: Any = (), names: bool = False) -> list[Any]:
        try:
            with self._lock:
                cursor = self._db.execute(sql, values)
                found: list[Any] = cursor.fetchall()
        except sqlite3.Error as error:
            raise BundleError(f"{self._path} does not answer ({error}): export it again") from None
        columns = [each[0] for each in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in found] if names else found

    def close(self) -> None:
        """Close the file."""
        with self._lock, suppress(sqlite3.Error):
            self._db.close()

    # writing ----------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside counts at once, or not at all; searches of this object see it already."""
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                raise BundleError(f"{self._path} cannot be changed ({error})") from None
            try:
                yield
            except BaseException:
                self._db.rollback()
                raise
            self._db.commit()

    def digests(self) -> Mapping[str, str]:
        """The digest of every document's content by docno."""
        return dict(self._rows("SELECT docno, digest FROM documents"))

    def vectors(self) -> Mapping[str, Vector]:
        """The vectors of its chunks by the key of what was embedded."""
        if "dense" not in self._plan.depths:
            return {}
        rows = self._rows("SELECT passage, vector FROM chunks JOIN vectors ON vectors.rowid = chunks.id")
        return {key: np.frombuffer(body, np.float32) for key, body in rows}

    def put(self, row: DocumentRow, vectors: Sequence[Vector | None], terms: Terms) -> None:
        """Write a document and its chunks in place of what the file has of it."""
        self.drop(row.docno)
        db, plan = self._db, self._plan
        document = db.execute(
            "INSERT INTO documents (docno, path, title, modified, metadata, digest) VALUES (?, ?, ?, ?, ?, ?)",
            (row.docno, row.path, row.title, row.modified, json.dumps(row.metadata), row.digest),
        ).lastrowid
        if plan.wholes:
            self._put_words("document", document, plan.wholes, row.fields, terms)
        for chunk, vector in zip(row.chunks, vectors, strict=True):
            number = db.execute(
                "INSERT INTO chunks (document, chunk_id, headings, heading_level, start_line, end_line, text, passage) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(document, chunk.chunk_id, json.dumps(chunk.headings), chunk.heading_level),
                    *(chunk.start_line, chunk.end_line, chunk.text, passage_key(chunk.passage)),
                ),
            ).lastrowid
            if plan.words:
                self._put_words("chunk", number, plan.words, chunk.fields, terms)
            if vector is not None:
                body = np.asarray(vector, np.float32).tobytes()
                db.execute("INSERT INTO vectors (rowid, vector) VALUES (?, ?)", (number, body))

    def _put_words(self, unit: str, number: int | None, scoring: Bm25F, texts: Mapping[str, str], terms: Terms) -> None:
        rows = ((p.term, number, p.tf, p.length, p.fields) for p in postings(texts, scoring, terms))
        self._db.executemany(f"INSERT INTO {unit}_words VALUES (?, ?, ?, ?, ?)", rows)

    def drop(self, docno: str) -> None:
        """Remove a document, if it is there."""
        db, plan = self._db, self._plan
        for (document,) in db.execute("SELECT id FROM documents WHERE docno = ?", (docno,)).fetchall():
            of_it = "(SELECT id FROM chunks WHERE document = ?)"
            if "dense" in plan.depths:
                db.execute(f"DELETE FROM vectors WHERE rowid IN {of_it}", (document,))
            if plan.words:
                db.execute(f"DELETE FROM chunk_words WHERE unit IN {of_it}", (document,))
            if plan.wholes:
                db.execute("DELETE FROM document_words WHERE unit = ?", (document,))
            db.execute("DELETE FROM chunks WHERE document = ?", (document,))
            db.execute("DELETE FROM documents WHERE id = ?", (document,))

    def finish(
        self, forms: Mapping[str, Sequence[str]], files: Mapping[str, bytes] | None, about: Mapping[str, Any]
    ) -> None:
        """Add forms, replace the files, set values of `about`, renew what is counted over all documents."""
        db = self._db
        db.executemany("INSERT OR REPLACE INTO forms VALUES (?, ?)", ((k, " ".join(v)) for k, v in forms.items()))
        if files is not None:
            db.execute("DELETE FROM files")
            packed = ((name, zlib.compress(body)) for name, body in files.items())
            db.executemany("INSERT INTO files VALUES (?, ?)", packed)
        for unit, scoring in units(self._plan).items():
            self._count(unit, scoring)
        rows = {**about, "digest": self.content_digest()}
        db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", ((k, as_text(v)) for k, v in rows.items()))

    def _count(self, unit: str, scoring: Bm25F) -> None:
        """Renew the idf of every term and the mean length."""
        weights, _ = scoring.scaled
        bits = range(len(weights))
        each = ", ".join(f"SUM(fields >> {bit} & 1)" for bit in bits)
        rows = self._rows(f"SELECT term, {each} FROM {unit}_words GROUP BY term")
        some = ", ".join(f"COUNT(DISTINCT CASE WHEN fields >> {bit} & 1 THEN unit END)" for bit in bits)
        held = self._rows(f"SELECT {some}, SUM(tf) FROM {unit}_words")[0]
        n_units, total = max(held[:-1]), held[-1]
        mean = (total or 0.0) / max(n_units or 0, 1)
        idf = statistics(((term, max(counts)) for term, *counts in rows), n_units or 0)
        self._db.execute(f"DELETE FROM {unit}_terms")
        values = ((term, value, mean) for term, value in idf.items())
        self._db.executemany(f"INSERT INTO {unit}_terms VALUES (?, ?, ?)", values)

    def content_digest(self) -> str:
        """A digest over documents, chunks, vectors, terms and files."""
        found = hashlib.sha256()
        tables = {name for (name,) in self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, order in _CONTENT:
            if table in tables:
                with self._lock:
                    for row in self._db.execute(f"SELECT * FROM {table} ORDER BY {order}"):
                        found.update(repr(row).encode("utf-8", "surrogatepass"))
        return found.hexdigest()

    def damage(self) -> str | None:
        """What is wrong with the file, None if nothing is."""
        try:
            with self._lock:
                ((said,),) = self._db.execute("PRAGMA quick_check(1)").fetchall()
            same = self.content_digest() == self.about.get("digest")
        except sqlite3.Error as error:
            return str(error)
        return str(said) if said != "ok" else None if same else "its content is not that which was written"


_CONTENT = (
    *(("documents", "id"), ("chunks", "id"), ("vectors", "rowid"), ("chunk_words", "term, unit")),
    *(("document_words", "term, unit"), ("forms", "form"), ("files", "name")),
)


def as_text(value: Any) -> str:
    """A value of `about`: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def found_of(row: Mapping[str, Any]) -> Found:
    """A row of the statement as a hit."""
    scores = {name: float(value) for name, value in row.items() if name not in _OWN and value is not None}
    return Found(str(row["chunk_id"]), float(row["score"]), scores)


_OWN = ("chunk_id", "score")
