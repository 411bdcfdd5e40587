"""A SQLite table of values by key, shared by threads and processes: a cache that may be deleted but is never wrong.

Every row has a checksum, so a damaged value is computed again. A damaged file is renamed and a new one is begun.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Final, TypeVar

from ragbench.base.types import ModelError

_T = TypeVar("_T")

_LOG = logging.getLogger(__name__)

# "ragb": marks a file as ours.
_APPLICATION: Final = 0x72616762
_BUSY_SECONDS: Final = 60
# SQLite takes at least 999 parameters in one statement.
_AT_ONCE: Final = 900


def key_of(*parts: str) -> bytes:
    """SHA-256 of the parts, 32 bytes; each is preceded by its length, so that ("ab", "c") and ("a", "bc") differ."""
    state = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        state.update(b"%d:" % len(raw))
        state.update(raw)
    return state.digest()


def embedding_key(digest: str, text: str) -> bytes:
    """The key of a text's vector under the digest of a model."""
    return key_of("embedding", digest, text)


class Recorded:
    """Instead of a `Store`: values by key in memory, which the owner of `values` reads and may change."""

    def __init__(self, values: dict[bytes, bytes]) -> None:
        self.values = values

    __repr__ = object.__repr__

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values found, by key."""
        return {key: self.values[key] for key in keys if key in self.values}

    def present(self, keys: Sequence[bytes]) -> set[bytes]:
        """The keys that have a value."""
        return set(self.read(keys))

    def write(self, values: Mapping[bytes, bytes]) -> None:
        """Keep values."""
        self.values.update(values)


class Store:
    """Values (bytes) by key (bytes) in table `table` of the SQLite file `path`, which is made when it is missing.

    ModelError when the file cannot be opened, read or written, or belongs to another program.
    """

    def __init__(self, path: Path, table: str) -> None:
        self.path = Path(path)
        self.table = table
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __len__(self) -> int:
        return self.call(lambda db: int(db.execute(f"SELECT count(*) FROM {self.table}").fetchone()[0]))

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values found, by key."""
        return self.call(lambda db: dict(self._valid_rows(db, keys)))

    def present(self, keys: Sequence[bytes]) -> set[bytes]:
        """The keys that have a value, without reading it."""
        return self.call(lambda db: {key for (key,) in self._rows(db, "key", keys)})

    def write(self, values: Mapping[bytes, bytes]) -> None:
        """Store values, all or none."""
        rows = [(key, value, zlib.crc32(key + value)) for key, value in values.items()]

        def insert(db: sqlite3.Connection) -> None:
            with _transaction(db):
                db.executemany(f"INSERT OR REPLACE INTO {self.table} VALUES (?, ?, ?)", rows)

        if rows:
            self.call(insert)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = self._opened = None

    def _valid_rows(self, db: sqlite3.Connection, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        for key, value, checksum in self._rows(db, "*", keys):
            if isinstance(value, bytes) and zlib.crc32(key + value) == checksum:
                yield key, value

    def _rows(self, db: sqlite3.Connection, columns: str, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(keys), _AT_ONCE):
            batch = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(batch))
            yield from db.execute(f"SELECT {columns} FROM {self.table} WHERE key IN ({marks})", batch)

    def call(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        """The result of an action on the open file; a damaged file is replaced by a new one first."""
        with self._lock:
            try:
                try:
                    return action(self._connection or self._open())
                except sqlite3.DatabaseError as reason:
                    if not _is_damage(reason):
                        raise
                    self._replace_damaged(reason)
                    return action(self._connection or self._open())
            except (sqlite3.Error, OSError) as reason:
                self.close()
                raise ModelError(
                    f"cache {self.path} cannot be used ({reason}): free it or choose another folder for the caches"
                ) from reason

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(db)
            self._opened = self._identity()
        except BaseException:
            db.close()
            raise
        self._connection = db
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        # In this order, because another process may be creating the file at the same time.
        is_new = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        owner = db.execute("PRAGMA application_id").fetchone()[0]
        if owner != _APPLICATION and not is_new:
            raise ModelError(
                f"cache {self.path} is a database of another program: choose another folder for the caches"
            )
        _retry_while_busy(lambda: db.execute("PRAGMA journal_mode=WAL").fetchone())
        db.execute("PRAGMA synchronous=NORMAL")
        with _transaction(db):
            db.execute(f"PRAGMA application_id={_APPLICATION}")
            db.execute(
                f"CREATE TABLE IF NOT EXISTS {self.table} "
                "(key BLOB PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL)"
            )

    def _replace_damaged(self, reason: Exception) -> None:
        from filelock import FileLock

        damaged = self._opened
        self.close()
        with FileLock(f"{self.path}.lock"):
            if not self.path.exists() or (damaged != self._identity() and self._can_open()):
                return  # another process has replaced it
            aside = self.path.with_name(self.path.name + ".damaged")
            _LOG.warning("cache %s is damaged (%s): moved to %s and started again", self.path, reason, aside.name)
            self.path.replace(aside)
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def _identity(self) -> tuple[int, int]:
        state = self.path.stat()
        return state.st_dev, state.st_ino

    def _can_open(self) -> bool:
        try:
            self._open()
        except sqlite3.DatabaseError as reason:
            if _is_damage(reason):
                return False
            raise
        return True


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _is_damage(reason: sqlite3.DatabaseError) -> bool:
    code = getattr(reason, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _retry_while_busy(action: Callable[[], object]) -> None:
    # SQLite waits by itself for every other step, but not for a change of the journal mode.
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as reason:
            if reason.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
