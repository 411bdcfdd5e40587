"""A search in a schema of PostgreSQL: vectors by pgvector, BM25F as rows, and one function `search` that asks.

    SELECT * FROM ragbench.search('how do I rotate a key', '[0.02, ...]', '{"category": "guide"}')

gives chunk_id, the fused score and the score in every source, best first. It analyses the words of the query itself.
`filters` must be contained in a document's metadata, `chunk_ids` names the chunks that may be found; both may be
omitted. Up to `postgres_schema.EXACT` chunks, and under filters, vectors are compared one by one; above by an HNSW
graph.

`?partitions=8` in the address that is loaded divides the tables of vectors and words into so many partitions, each with
a graph of its own.

Everything is loaded into another schema, which replaces the one that answers in the same transaction.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ragbench.base.errors import ConfigError
from ragbench.boundary.json import read_json
from ragbench.extras.engines import postgres_schema as made
from ragbench.extras.engines.plan import Plan
from ragbench.extras.engines.postgres_server import Server, client, translate_errors
from ragbench.extras.engines.search import Found, Vector, parse_errors
from ragbench.extras.engines.tables import COLUMNS, FORMAT, Tables

if TYPE_CHECKING:
    from psycopg import Connection

_BUFFER = 8 * 2**20  # characters of rows that are sent at once


def lines(table: str, rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Rows as COPY reads them, without words that PostgreSQL cannot hold."""
    of_words = table == "forms" or table.endswith("_words")
    for row in rows:
        if not (of_words and text_of(row[0]) != row[0]):
            yield "\t".join(map(_field, row)) + "\n"


_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\ufffd"})


def _field(value: Any) -> str:
    if isinstance(value, str):
        return text_of(value).translate(_ESCAPED)
    if isinstance(value, bytes):
        return f"\\\\x{value.hex()}"
    return vector_text(value) if isinstance(value, np.ndarray) else repr(value)


def text_of(value: str) -> str:
    """A text that PostgreSQL takes: without NUL and halves of characters."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def to_postgres(values: Iterable[Any]) -> list[Any]:
    """Values that PostgreSQL takes, also inside lists."""
    return [
        text_of(item) if isinstance(item, str) else to_postgres(item) if isinstance(item, list) else item
        for item in values
    ]


def vector_text(vector: Vector) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(['%.9g'] * len(vector))}]" % tuple(vector.tolist())


class PostgresEngine(Tables):
    """A schema of PostgreSQL. Threads may share it: each search has a connection of its own while it runs."""

    def __init__(self, address: str, writable: bool = False, inside: Connection[Any] | None = None) -> None:
        super().__init__()
        self._server, self._writable, self._inside = Server.of(address), writable, inside
        self._schema = self._server.schema if inside is None else made.draft(self._server.schema)
        self._idle: list[Connection[Any]] = []
        self.close = weakref.finalize(self, _close, self._idle)
        self._lock = threading.Lock()
        self._waiting: dict[str, list[str]] = {}
        self._n_waiting = 0
        self._fresh = inside is not None
        if inside is None:
            with self._connection():
                self._open()

    @staticmethod
    @contextmanager
    def create(address: str, plan: Plan, dimension: int, facts: Mapping[str, Any]) -> Iterator[PostgresEngine]:
        """New tables in one transaction, which replace the earlier ones when the block ends well."""
        server = Server.of(address)
        with translate_errors(server), server.connect(read_only=False) as db, db.transaction():
            if db.info.parameter_status("server_encoding") != "UTF8":
                raise ConfigError(f"{server.name} is not in UTF-8: name a database that is")
            db.execute(made.begin(server.schema, plan))
            engine = PostgresEngine(address, True, db)
            engine._prepare(db)
            db.execute(made.schema(plan, dimension, server.partitions))
            engine.plan = plan
            engine._say({"format": FORMAT, "plan": plan.to_json(), **facts})
            engine.about = {}
            yield engine
            engine._send()
            db.execute(made.swap(server.schema))

    @staticmethod
    def reach(address: str) -> None:
        """Raise BundleError, ConfigError where no server answers at an address."""
        server = Server.of(address)
        with translate_errors(server), server.connect(read_only=False):
            pass

    @property
    def name(self) -> str:
        """The schema and the database."""
        return self._server.name

    @parse_errors
    def ask(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Found:
        """Call the function."""
        dense = "" if vector is None else "?::vector, "
        values = [
            text_of(text),
            *([] if vector is None else [vector_text(vector)]),
            None if only is None else list(only),
        ]
        statement = (
            f"SELECT {', '.join(('chunk_id', 'score', *self.plan.depths))} FROM search(?, {dense}NULL, ?::text[])"
        )
        return Found.of(self.plan.depths, self._rows(statement, values))

    @parse_errors
    def damage(self) -> str | None:
        """What is wrong with its content, None if nothing is."""
        ((current, recorded),) = self._rows(
            f"SELECT {made.digest(self.plan)}, (SELECT value FROM about WHERE key = 'digest')"
        )
        return None if current == recorded else "its content is not that which was written"

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside counts at once, or not at all; another writer waits."""
        self._last_id.clear()
        if self._inside is not None:  # of the load
            yield
            return
        with translate_errors(self._server), self._connection() as db, db.transaction():
            self._inside = db
            try:
                db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"ragbench {self._schema}",))
                yield
                self._send()
            finally:
                self._inside = None
                self._waiting, self._n_waiting = {}, 0

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self._send()
        for retry in (True, False):
            with translate_errors(self._server), self._connection() as db:
                try:
                    return db.execute(sql.replace("?", "%s"), to_postgres(values) or None).fetchall()
                except client().OperationalError:
                    if not (retry and db.closed and self._inside is None):
                        raise
                    _close(self._idle)  # the server was started again: the others are closed, too
        raise AssertionError("unreachable")

    def _execute(self, sql: str) -> None:
        self._send()
        with translate_errors(self._server), self._connection() as db:
            db.execute(sql)

    def _insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        table_lines = list(lines(table, rows))
        self._waiting.setdefault(table, []).extend(table_lines)
        self._n_waiting += sum(map(len, table_lines))
        if self._n_waiting > _BUFFER:
            self._send()

    def _send(self) -> None:
        """Send the rows that wait."""
        if not self._waiting:
            return
        waiting, self._waiting, self._n_waiting = self._waiting, {}, 0
        with translate_errors(self._server), self._connection() as db, db.cursor() as cursor:
            for table in COLUMNS:
                if table in waiting:
                    with cursor.copy(f"COPY {table} ({', '.join(COLUMNS[table])}) FROM STDIN") as copy:
                        copy.write("".join(waiting[table]))

    def _delete(self, table: str, column: str, values: Collection[Any]) -> None:
        self._send()
        with translate_errors(self._server), self._connection() as db:
            db.execute(f"DELETE FROM {table} WHERE {column} = ANY (%s)", (to_postgres(values),))

    def _among(self, column: str, values: Collection[Any]) -> tuple[str, Any]:
        return f"{column} = ANY (?)", list(values)

    def _json(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False).replace("\\u0000", "\\ufffd")

    def _vector(self, value: Any) -> Vector:
        return np.array(read_json(value), np.float32)

    def _seal(self) -> None:
        if self._fresh:
            ((collation,),) = self._rows(f"SELECT {made.WORDS}")
            self._execute(made.keys(self.plan, collation, self._server.partitions))
        if "dense" in self.plan.depths:
            self._execute(made.GRAPH)
        self._fresh = False
        self._execute("DELETE FROM about WHERE key = 'digest'")
        self._execute(f"INSERT INTO about SELECT 'digest', {made.digest(self.plan)}")

    def _prepare(self, db: Connection[Any]) -> None:
        """Look for tables in the schema, and for the type of vectors where the extension was made."""
        path = [self._schema, *(name for (name,) in db.execute(made.VECTORS)), "pg_catalog"]
        db.execute(f"SET search_path TO {', '.join(map(made.identifier, path))}")

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        if self._inside is not None:
            yield self._inside
            return
        with self._lock:
            db = self._idle.pop() if self._idle else None
        if db is None:
            db = self._server.connect(read_only=not self._writable)
            self._prepare(db)
        try:
            yield db
        finally:
            with self._lock:
                if not db.closed:
                    self._idle.append(db)


def _close(connections: list[Connection[Any]]) -> None:
    while connections:
        connections.pop().close()
