"""A search in one SQLite file: vectors by sqlite-vec, BM25F as rows, and one statement that searches.

The statement is also in `about`, for programs without ragbench. ragbench never runs it: a file may come from others, so
its tables must be those below, and only reading is allowed.

FTS5 is not used: its bm25 has k1 and b of its own, another length and another idf, and lost 0.005 of nDCG@10.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import re
import sqlite3
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ragbench.base import files
from ragbench.base.types import BundleError, ConfigError
from ragbench.extras.engines import tables
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.engines.search import Found, Vector, parse_errors
from ragbench.extras.engines.tables import COLUMNS, FORMAT, Tables, TableWriter, about_rows, units
from ragbench.extras.engines.words import query_terms

MAGIC = b"SQLite format 3\0"
_CACHED = 2**18  # KiB of a file that a connection keeps; mapped, it would kill who reads it when it is overwritten
_SECONDS, _STEPS = 60, 100_000  # a search takes milliseconds; instructions between two looks at the clock
_DIMENSION = re.compile(r"float\[\d+\]")
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # the end of a journal that names another file
_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
_DECLARES = {(sqlite3.SQLITE_UPDATE, "sqlite_master"), (sqlite3.SQLITE_PRAGMA, "quick_check")}
_WRITES = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_TRANSACTION}
_OF_THE_DISK = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
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


def schema(plan: SearchPlan, dimension: int) -> str:
    """The statements that make the tables."""
    return _schema(units(plan), dimension if "dense" in plan.depths else 0)


def _schema(of_units: Iterable[str], dimension: int | None) -> str:
    statements = _SCHEMA
    for unit in of_units:
        statements += (
            f"CREATE TABLE {unit}_words (term TEXT NOT NULL, unit INTEGER NOT NULL, tf REAL NOT NULL, "
            "length INTEGER NOT NULL, fields INTEGER NOT NULL, PRIMARY KEY (term, unit)) WITHOUT ROWID;\n"
            f"CREATE TABLE {unit}_terms (term TEXT PRIMARY KEY, idf REAL NOT NULL, mean REAL NOT NULL) WITHOUT ROWID;\n"
        )
    if dimension != 0:
        statements += f"CREATE VIRTUAL TABLE vectors USING vec0(vector float[{dimension}] distance_metric=cosine);\n"
    return statements


def statement(plan: SearchPlan) -> str:
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
    """Open a file with sqlite-vec. Raises BundleError if it cannot be opened, ConfigError without sqlite-vec."""
    try:
        import sqlite_vec
    except ImportError:
        raise ConfigError("SQLite files need sqlite-vec: pip install 'ragbench[engines]'") from None
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        _load_for_all(sqlite_vec.loadable_path())
    with _one_sentence(path):
        db = _plain_connection(path, "ro" if read_only else "rwc")
        try:
            if hasattr(sqlite3.Connection, "enable_load_extension"):
                db.enable_load_extension(True)
                sqlite_vec.load(db)
                db.enable_load_extension(False)
            db.executescript(f"PRAGMA cache_size = -{_CACHED}; PRAGMA trusted_schema = OFF")
        except BaseException:
            db.close()
            raise
    return db


def _plain_connection(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=30.0)


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            raise BundleError(f"{path} has not answered within {_SECONDS} s: export it again") from None
        if code in _OF_THE_DISK:
            raise BundleError(
                f"{path} cannot be written ({error}): check its permissions, its folder and the free space of the disk"
            ) from None
        raise BundleError(f"{path} does not answer ({error}): export it again") from None


def _undo_killed_refresh(path: Path) -> None:
    """Roll back the transaction of a killed process, which readers cannot do."""
    journal = path.with_name(f"{path.name}-journal")
    try:
        if journal.read_bytes()[-len(_SUPER_JOURNAL) :] == _SUPER_JOURNAL:  # SQLite would delete the file it names
            raise BundleError(f"{journal} was not written by ragbench: delete it")
        with closing(_plain_connection(path, "rw")) as db:
            db.execute("SELECT count(*) FROM sqlite_master")
    except FileNotFoundError:
        return  # another process was faster
    except (OSError, sqlite3.Error) as error:
        raise BundleError(
            f"a killed refresh of {path} cannot be undone here ({error}): run ragbench verify {path} where its folder "
            "can be written"
        ) from None


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

    def __init__(self, path: Path, writable: bool = False, draft: sqlite3.Connection | None = None) -> None:
        self._path, self._lock, self._until = path, threading.RLock(), math.inf
        if draft is None and path.with_name(f"{path.name}-journal").exists():
            _undo_killed_refresh(path)
        self._db = draft or connect(path, read_only=not writable)
        self._db.create_function("ln", 1, math.log, deterministic=True)
        self._db.create_function(
            "GREATEST", -1, lambda *values: max(value or 0 for value in values), deterministic=True
        )
        self._db.set_authorizer(_writing if writable else _reading)
        self._db.set_progress_handler(lambda: time.monotonic() > self._until, _STEPS)
        try:
            self._check_schema()
            self.read_about()
            if self.about.get("search") != statement(self.plan):
                raise BundleError(f"{path} contains another search than its plan: export it again")
        except BaseException:
            self._db.close()
            raise

    def _check_schema(self) -> None:
        """Raise BundleError for views, triggers, and tables that ragbench does not create: they may contain code."""
        known_statements = {_words(sql) for sql in _schema(("chunk", "document"), None).split(";")}
        for name, sql in self.rows("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"):
            of_vectors = re.match(r"(?s)(sqlite_sequence|vectors_\w+) CREATE TABLE ", f"{name} {sql}")
            if not of_vectors and _DIMENSION.sub("float[None]", _words(str(sql))) not in known_statements:
                raise BundleError(f"{self._path} is not a search that ragbench exported ({name}): export one")

    @staticmethod
    @contextmanager
    def create(path: Path, plan: SearchPlan, dimension: int, facts: Mapping[str, Any]) -> Iterator[SqliteEngine]:
        """A new file with empty tables, which takes its place when the block ends well."""
        try:
            with files.atomic_write(path) as draft, closing(connect(draft)) as db, _one_sentence(path):
                db.executescript(f"PRAGMA journal_mode = MEMORY; {schema(plan, dimension)}")
                about = {"format": FORMAT, "plan": plan.to_json(), "search": statement(plan), **facts}
                db.executemany("INSERT INTO about VALUES (?, ?)", about_rows(about))
                yield SqliteEngine(path, writable=True, draft=db)
        except OSError as error:
            raise BundleError(f"cannot write {path} ({error.strerror}): name another file with --out") from None

    @property
    def name(self) -> str:
        """The file."""
        return str(self._path)

    @parse_errors
    def ask(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Found:
        """Send the statement."""
        values = {
            "terms": json.dumps(query_terms(text, self._look_up)),
            "vector": None if vector is None else np.asarray(vector, np.float32).tobytes(),
            "only": None if only is None else json.dumps(list(only)),
        }
        return Found.of(self.plan.depths, self.rows(statement(self.plan), values))

    def _look_up(self, forms: Iterable[str]) -> Mapping[str, str]:
        condition, value = self.among("form", sorted(forms))
        return dict(self.rows(f"SELECT form, terms FROM forms WHERE {condition}", (value,)))

    def rows(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement returns; again after what a killed refresh left is undone."""
        for retry in (True, False):
            with _one_sentence(self._path), self._lock:
                self._until = time.monotonic() + _SECONDS
                try:
                    return self._db.execute(sql, values).fetchall()
                except sqlite3.OperationalError as error:
                    if not retry or getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_READONLY_ROLLBACK:
                        raise
                finally:
                    self._until = math.inf
                _undo_killed_refresh(self._path)
        raise AssertionError("unreachable")

    def execute(self, sql: str) -> None:
        """Send a statement."""
        with _one_sentence(self._path), self._lock:
            self._db.execute(sql)

    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows."""
        values = ", ".join("?" * len(COLUMNS[table]))
        sql = f"INSERT INTO {table} ({', '.join(COLUMNS[table])}) VALUES ({values})"
        with _one_sentence(self._path):
            self._db.executemany(sql, (tuple(map(_plain, row)) for row in rows))

    def delete(self, table: str, column: str, values: Collection[Any]) -> None:
        """Delete the rows that have one of the values."""
        with _one_sentence(self._path):
            self._db.executemany(f"DELETE FROM {table} WHERE {column} = ?", ((value,) for value in values))

    def among(self, column: str, values: Collection[Any]) -> tuple[str, Any]:
        """The condition that a column has one of the values, which are one list of JSON."""
        return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(list(values))

    def vector(self, value: Any) -> Vector:
        """A vector of bytes."""
        return np.frombuffer(value, np.float32)

    def json(self, value: Any) -> str:
        """A value as text."""
        return json.dumps(value)

    def close(self) -> None:
        """Close the file."""
        with self._lock, suppress(sqlite3.Error):
            self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[TableWriter]:
        """Everything inside counts at once, or not at all; searches of this object see it already."""
        with self._lock, _one_sentence(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield TableWriter(self)
                self._db.commit()
            except BaseException:
                self._db.rollback()
                raise

    def seal(self) -> None:
        """Keep a digest over all tables."""
        self.delete("about", "key", ["digest"])
        self.insert("about", [("digest", self._digest())])

    def _digest(self) -> str:
        """Return a digest over all tables, except that of the digest itself."""
        digest = hashlib.sha256()
        for table in tables.tables(self.plan):
            condition = " WHERE key <> 'digest'" if table == "about" else ""
            with self._lock:
                for row in self._db.execute(
                    f"SELECT {', '.join(COLUMNS[table])} FROM {table}{condition} ORDER BY 1, 2"
                ):
                    digest.update(repr(row).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @parse_errors
    def damage(self) -> str | None:
        """What is wrong with the file, None if nothing is."""
        try:
            with self._lock:
                ((result,),) = self._db.execute("PRAGMA quick_check(1)").fetchall()
            digest_matches = self._digest() == self.about.get("digest")
        except sqlite3.Error as error:
            return str(error)
        return (
            str(result) if result != "ok" else None if digest_matches else "its content is not that which was written"
        )


def _reading(action: int, *first_argument: str | None) -> int:
    """Allow statements that read, whatever they consist of, and what virtual tables declare."""
    allowed = action in _READS or (action, first_argument[0]) in _DECLARES
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _writing(action: int, *first_argument: str | None) -> int:
    """Allow statements that read or change rows."""
    return sqlite3.SQLITE_OK if action in _WRITES else _reading(action, *first_argument)


def _words(sql: str) -> str:
    return " ".join(sql.split())


def _plain(value: Any) -> Any:
    return np.asarray(value, np.float32).tobytes() if isinstance(value, np.ndarray) else value
