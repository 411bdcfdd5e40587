"""A search in one SQLite file: vectors by sqlite-vec, BM25F as rows, and one statement, kept in `about`, that searches.

FTS5 is not used: its bm25 has k1 and b of its own, another length and another idf, and lost 0.005 of nDCG@10.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ragbench.base.errors import BundleError, ConfigError
from ragbench.export.engines import tables
from ragbench.export.engines.plan import Plan
from ragbench.export.engines.search import Found, Vector, understood
from ragbench.export.engines.tables import COLUMNS, FORMAT, Tables, units
from ragbench.export.engines.words import query_terms

MAGIC = b"SQLite format 3\0"
_CACHED = 2**18  # KiB of a file that a connection keeps; mapped, it would kill who reads it when it is overwritten
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


def statement(plan: Plan) -> str:
    """The search as one statement.

    `:terms` is a JSON object with the number of each term of the query; `:vector` the query's vector, float32 as bytes;
    `:only` a JSON list of the chunk ids that may be found, or NULL.
    """
    nearest = "SELECT rowid, 1 - distance FROM vectors WHERE vector MATCH :vector AND k = "
    within = "AND :only IS NOT NULL AND rowid IN (SELECT chunk FROM allowed)"
    dialect = tables.Dialect(
        (
            "allowed (chunk) AS MATERIALIZED (\n"
            "  SELECT id FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(:only)))",
            "asked (term, n) AS MATERIALIZED (SELECT key, value FROM json_each(:terms))",
        ),
        ":only IS NULL",
        lambda depth: f"{nearest}{depth} AND :only IS NULL\n  UNION ALL {nearest}{depth} {within}",
    )
    return tables.statement(plan, dialect)


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
    db.execute(f"PRAGMA cache_size = -{_CACHED}")
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


class SqliteEngine(Tables):
    """An open file. Threads may share it; every search sees one state of the file, and so do writers of it."""

    def __init__(self, path: Path, writable: bool = False) -> None:
        super().__init__()
        self._path, self._lock = path, threading.RLock()
        self._db = connect(path, read_only=not writable)
        self._db.create_function("ln", 1, math.log, deterministic=True)
        self._db.create_function("GREATEST", -1, lambda *values: max(each or 0 for each in values), deterministic=True)
        try:
            self._open()
        except BaseException:
            self._db.close()
            raise

    @staticmethod
    @contextmanager
    def create(path: Path, plan: Plan, dimension: int, about: Mapping[str, Any]) -> Iterator[SqliteEngine]:
        """A new file with empty tables, which takes its place when the block ends well."""
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            with closing(connect(draft)) as db:
                db.executescript(schema(plan, dimension))
                db.executemany(
                    "INSERT INTO about VALUES (?, ?)",
                    (("format", str(FORMAT)), ("plan", plan.to_json()), ("search", statement(plan))),
                )
            with closing(SqliteEngine(draft, writable=True)) as engine:
                with engine.transaction():
                    engine._say(about)
                yield engine
            draft.replace(path)
        except OSError as error:
            raise BundleError(f"cannot write {path} ({error.strerror}): name another file with --out") from None
        finally:
            draft.unlink(missing_ok=True)

    @property
    def name(self) -> str:
        """The file."""
        return str(self._path)

    @understood
    def ask(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Found:
        """Send the statement."""
        values = {
            "terms": json.dumps(query_terms(text, self._look_up)),
            "vector": None if vector is None else np.asarray(vector, np.float32).tobytes(),
            "only": None if only is None else json.dumps(list(only)),
        }
        return Found.of(self.plan.depths, self._rows(self.about["search"], values))

    def _look_up(self, forms: Iterable[str]) -> Mapping[str, str]:
        condition, value = self._among("form", sorted(forms))
        return dict(self._rows(f"SELECT form, terms FROM forms WHERE {condition}", (value,)))

    def _rows(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise BundleError(f"{self._path} does not answer ({error}): export it again") from None

    def _execute(self, sql: str) -> None:
        self._rows(sql)

    def _insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        values = ", ".join("?" * len(COLUMNS[table]))
        sql = f"INSERT INTO {table} ({', '.join(COLUMNS[table])}) VALUES ({values})"
        self._db.executemany(sql, (tuple(map(_plain, row)) for row in rows))

    def _delete(self, table: str, column: str, values: Collection[Any]) -> None:
        self._db.executemany(f"DELETE FROM {table} WHERE {column} = ?", ((value,) for value in values))

    def _among(self, column: str, values: Collection[Any]) -> tuple[str, Any]:
        return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(list(values))

    def _vector(self, value: Any) -> Vector:
        return np.frombuffer(value, np.float32)

    def close(self) -> None:
        """Close the file."""
        with self._lock, suppress(sqlite3.Error):
            self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside counts at once, or not at all; searches of this object see it already."""
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                raise BundleError(f"{self._path} cannot be changed ({error})") from None
            self._last_id.clear()
            try:
                yield
            except BaseException:
                self._db.rollback()
                raise
            self._db.commit()

    def _seal(self) -> None:
        self._say({"digest": self._digest()})

    def _digest(self) -> str:
        """A digest over documents, chunks, vectors, terms and files."""
        found = hashlib.sha256()
        there = {name for (name,) in self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, order in _CONTENT:
            if table in there:
                with self._lock:
                    for row in self._db.execute(f"SELECT * FROM {table} ORDER BY {order}"):
                        found.update(repr(row).encode("utf-8", "surrogatepass"))
        return found.hexdigest()

    @understood
    def damage(self) -> str | None:
        """What is wrong with the file, None if nothing is."""
        try:
            with self._lock:
                ((said,),) = self._db.execute("PRAGMA quick_check(1)").fetchall()
            same = self._digest() == self.about.get("digest")
        except sqlite3.Error as error:
            return str(error)
        return str(said) if said != "ok" else None if same else "its content is not that which was written"


_CONTENT = (
    *(("documents", "id"), ("chunks", "id"), ("vectors", "rowid"), ("chunk_words", "term, unit")),
    *(("document_words", "term, unit"), ("forms", "form"), ("files", "name")),
)


def _plain(value: Any) -> Any:
    return np.asarray(value, np.float32).tobytes() if isinstance(value, np.ndarray) else value
