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
import re
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import numpy as np

from ragbench.base.types import BundleError, ConfigError
from ragbench.boundary import paths
from ragbench.boundary.json import read_json
from ragbench.extras.engines import postgres_schema as made
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.engines.search import Found, Vector, parse_errors
from ragbench.extras.engines.tables import COLUMNS, FORMAT, Tables, TableWriter, about_rows

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMES = ("postgres", "postgresql")
NAME = re.compile(r"[a-z_][a-z0-9_]{0,49}")
"""The name of a schema."""
_OLDEST = 14  # version of the server: functions that are bound when they are made
_WAIT_S = 10
_MOST_PARTITIONS = 64
_BUFFER = 8 * 2**20  # characters of rows that are sent at once
_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\ufffd"})


@dataclass(frozen=True)
class Server:
    """A database and a schema in it; `name` is what messages call it, without what may be secret.

    A load makes tables of vectors and words of so many `partitions`.
    """

    conninfo: str = field(repr=False)
    schema: str
    name: str
    partitions: int = 1

    @staticmethod
    def of(address: str) -> Server:
        """The server of an address, or of the variable or file that holds one. Raises ConfigError."""
        psycopg = client()
        address_value = paths.resolved(address)
        try:
            parts = urlsplit(address_value)
            pairs = parse_qsl(parts.query, keep_blank_values=True)
        except ValueError:
            raise ConfigError(
                "the address of the database cannot be read: write postgres://user@host/database"
            ) from None
        if parts.scheme not in SCHEMES:
            raise ConfigError("the address of the database must begin with postgres://")
        named = dict(pairs).get("schema", "ragbench")
        if not NAME.fullmatch(named):
            raise ConfigError(f"schema={named} must be small letters, digits and _, such as schema=notes")
        parted = dict(pairs).get("partitions", "1")
        if not (parted.isdecimal() and 1 <= int(parted) <= _MOST_PARTITIONS):
            raise ConfigError(f"partitions={parted} must be a number from 1 to {_MOST_PARTITIONS}: try partitions=8")
        query_string = urlencode([(key, value) for key, value in pairs if key not in ("schema", "partitions")])
        conninfo = parts._replace(query=query_string).geturl()
        try:
            options = psycopg.conninfo.conninfo_to_dict(conninfo)
        except psycopg.Error:
            raise ConfigError(
                "the address of the database has a part that PostgreSQL does not know: write "
                "postgres://user@host:5432/database?schema=notes&sslmode=require"
            ) from None
        location = f"{options.get('host', 'localhost')}/{options.get('dbname', '')}"
        return Server(conninfo, named, f"the schema {named} of {location}", int(parted))

    def connect(self, read_only: bool = True) -> Connection[Any]:
        """A connection whose statements count at once. Raises BundleError."""
        psycopg = client()
        options = f"-c default_transaction_read_only={'on' if read_only else 'off'}"
        more = {"connect_timeout": _WAIT_S, "application_name": "ragbench", "client_encoding": "UTF8"}
        conninfo_values = psycopg.conninfo.conninfo_to_dict(self.conninfo)
        more = {key: value for key, value in more.items() if key not in conninfo_values}
        try:
            db: Connection[Any] = psycopg.connect(
                self.conninfo,
                autocommit=True,
                options=f"{conninfo_values.get('options') or ''} {options}".strip(),
                **more,
            )
        except psycopg.Error as error:
            raise BundleError(self.sentence(error)) from None
        if db.info.server_version < _OLDEST * 10_000:
            db.close()
            raise BundleError(
                f"{self.name} is PostgreSQL {db.info.server_version // 10_000}: it must be {_OLDEST} or later"
            )
        return db

    def sentence(self, error: Exception) -> str:
        """What went wrong, with the remedy; no part of the address that may be secret is in it."""
        reply = str(error).strip()
        first = next((line for line in reply.splitlines() if "FATAL" in line), reply.partition("\n")[0])
        state = getattr(error, "sqlstate", None) or ""
        cases = [
            ("password" in reply and not state, "refuses the name or password: set PGPASSWORD, or env:NAME instead of "
             "the address"),
            ("vector" in reply and state in ("58P01", "0A000"), "has no pgvector: install it on the server "
             "(Debian: postgresql-NN-pgvector)"),
            ("extension" in reply and state == "42501", "has no pgvector yet, and this role may not make it: ask its "
             "administrator for CREATE EXTENSION vector"),
            (state == "42501", f"refuses this ({first}): use a role that may"),
            (state == "3F000", f"cannot be replaced ({first}): name another with ?schema=NAME"),
            (state == "2BP01", f"cannot be replaced, because another object depends on it ({reply.splitlines()[-1]}): "
             "drop that first"),
            (state == "55P03", "cannot be replaced: another session read it for over a minute; load it again later"),
            (state == "42P01", "has no search of ragbench: load it with ragbench export --format postgres --load"),
            (state == "25006", f"may only be read ({first}): name the server that is written"),
            (not state, f"does not answer ({first}): check that it runs, and its address"),
        ]  # fmt: skip
        problem = next((problem for holds, problem in cases if holds), f"does not answer ({first})")
        return f"{self.name} {problem}"


def client() -> Any:
    """The client's module. Raises ConfigError where it is not installed."""
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError:
        raise ConfigError("PostgreSQL needs psycopg: pip install 'ragbench[postgres]'") from None
    return psycopg


@contextmanager
def translate_errors(server: Server) -> Iterator[None]:
    """Errors of the client as sentences."""
    try:
        yield
    except client().Error as error:
        raise BundleError(server.sentence(error)) from None


def lines(table: str, rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Rows as COPY reads them, without words that PostgreSQL cannot hold."""
    of_words = table == "forms" or table.endswith("_words")
    for row in rows:
        if not (of_words and text_of(row[0]) != row[0]):
            yield "\t".join(map(_field, row)) + "\n"


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
        self._server, self._writable, self._inside = Server.of(address), writable, inside
        self._schema = self._server.schema if inside is None else made.draft(self._server.schema)
        self._idle: list[Connection[Any]] = []
        self.close = weakref.finalize(self, _close, self._idle)
        self._lock = threading.Lock()
        self._waiting: dict[str, list[str]] = {}
        self._n_waiting = 0
        self._fresh = inside is not None
        with self._connection():
            self.read_about()

    @staticmethod
    @contextmanager
    def create(address: str, plan: SearchPlan, dimension: int, facts: Mapping[str, Any]) -> Iterator[PostgresEngine]:
        """New tables in one transaction, which replace the earlier ones when the block ends well."""
        server = Server.of(address)
        with translate_errors(server), server.connect(read_only=False) as db, db.transaction():
            if db.info.parameter_status("server_encoding") != "UTF8":
                raise ConfigError(f"{server.name} is not in UTF-8: name a database that is")
            db.execute(made.begin(server.schema, plan))
            _look_into(made.draft(server.schema), db)
            db.execute(made.schema(plan, dimension, server.partitions))
            about = about_rows({"format": FORMAT, "plan": plan.to_json(), **facts})
            db.cursor().executemany("INSERT INTO about VALUES (%s, %s)", list(map(to_postgres, about)))
            yield PostgresEngine(address, True, db)
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
        return Found.of(self.plan.depths, self.rows(statement, values))

    @parse_errors
    def damage(self) -> str | None:
        """What is wrong with its content, None if nothing is."""
        ((current, recorded),) = self.rows(
            f"SELECT {made.digest(self.plan)}, (SELECT value FROM about WHERE key = 'digest')"
        )
        return None if current == recorded else "its content is not that which was written"

    @contextmanager
    def transaction(self) -> Iterator[TableWriter]:
        """Everything inside counts at once, or not at all; another writer waits."""
        if self._inside is not None:  # of the load
            yield TableWriter(self)
            self._send()
            return
        with translate_errors(self._server), self._connection() as db, db.transaction():
            self._inside = db
            try:
                db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"ragbench {self._schema}",))
                yield TableWriter(self)
                self._send()
            finally:
                self._inside = None
                self._waiting, self._n_waiting = {}, 0

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement returns; once again if the server was started again."""
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

    def execute(self, sql: str) -> None:
        """Send a statement."""
        self._send()
        with translate_errors(self._server), self._connection() as db:
            db.execute(sql)

    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows, which are sent many at once."""
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

    def delete(self, table: str, column: str, values: Collection[Any]) -> None:
        """Delete the rows that have one of the values."""
        self._send()
        with translate_errors(self._server), self._connection() as db:
            db.execute(f"DELETE FROM {table} WHERE {column} = ANY (%s)", (to_postgres(values),))

    def among(self, column: str, values: Collection[Any]) -> tuple[str, Any]:
        """The condition that a column has one of the values, which are one array."""
        return f"{column} = ANY (?)", list(values)

    def json(self, value: Any) -> str:
        """A value as text without NUL, which PostgreSQL cannot hold."""
        return json.dumps(value, ensure_ascii=False).replace("\\u0000", "\\ufffd")

    def vector(self, value: Any) -> Vector:
        """A vector of the text of pgvector."""
        return np.array(read_json(value), np.float32)

    def seal(self) -> None:
        """Make the keys and the function of new tables, and keep a digest."""
        if self._fresh:
            ((collation,),) = self.rows(f"SELECT {made.WORDS}")
            self.execute(made.keys(self.plan, collation, self._server.partitions))
        if "dense" in self.plan.depths:
            self.execute(made.GRAPH)
        self._fresh = False
        self.execute("DELETE FROM about WHERE key = 'digest'")
        self.execute(f"INSERT INTO about SELECT 'digest', {made.digest(self.plan)}")

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        if self._inside is not None:
            yield self._inside
            return
        with self._lock:
            db = self._idle.pop() if self._idle else None
        if db is None:
            db = self._server.connect(read_only=not self._writable)
            _look_into(self._schema, db)
        try:
            yield db
        finally:
            with self._lock:
                if not db.closed:
                    self._idle.append(db)


def _look_into(schema: str, db: Connection[Any]) -> None:
    """Look for tables in the schema, and for the type of vectors where the extension was made."""
    path = [schema, *(name for (name,) in db.execute(made.VECTORS)), "pg_catalog"]
    db.execute(f"SET search_path TO {', '.join(map(made.identifier, path))}")


def _close(connections: list[Connection[Any]]) -> None:
    while connections:
        connections.pop().close()
