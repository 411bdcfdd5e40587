"""Rows of a cache as segments, which machines exchange: written once, never changed, named by their content.

A segment is an Arrow table of keys and values. Its name is a digest of its bytes, so that a damaged or incomplete one
is noticed. A cache remembers the segments it has imported and the rows it has shared; sharing a row twice does no harm.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping

from ragbench.models.store import Store

SUFFIX = ".arrow"
_AT_ONCE = 500
_BYTES = 32 << 20  # of the values in one segment: an interrupted transfer repeats at most these


def known_segments(store: Store) -> set[str]:
    """The names of the segments that the cache has imported or shared."""
    return store.call(lambda db: {str(name) for (name,) in _with_tables(db).execute("SELECT name FROM segments")})


def import_segment(store: Store, name: str, content: bytes) -> bool:
    """Put the rows of a segment into the cache; False when its content does not have the digest in its name."""
    import pyarrow as pa

    if name != _name(content):
        return False
    table = pa.ipc.open_file(content).read_all()
    rows = dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
    store.write(rows)
    mark_shared(store, name, rows)
    return True


def new_segments(store: Store) -> Iterator[tuple[str, bytes, Mapping[bytes, bytes]]]:
    """Segments (name, content, rows) of the rows neither imported nor shared; call `mark_shared` after sharing one."""
    keys = store.call(
        lambda db: [
            bytes(key)
            for (key,) in _with_tables(db).execute(
                f"SELECT key FROM {store.table} WHERE key NOT IN (SELECT key FROM shared) ORDER BY key"
            )
        ]
    )
    rows: dict[bytes, bytes] = {}
    size = 0
    for start in range(0, len(keys), _AT_ONCE):
        batch = keys[start : start + _AT_ONCE]
        stored = store.read(batch)
        for key in batch:
            if key in stored:
                rows[key] = stored[key]
                size += len(stored[key])
            if size >= _BYTES:
                yield _make_segment(rows)
                rows, size = {}, 0
    if rows:
        yield _make_segment(rows)


def mark_shared(store: Store, name: str, rows: Mapping[bytes, bytes]) -> None:
    """Remember a segment and its rows."""

    def insert(db: sqlite3.Connection) -> None:
        _with_tables(db).executemany("INSERT OR IGNORE INTO shared VALUES (?)", [(key,) for key in rows])
        db.execute("INSERT OR IGNORE INTO segments VALUES (?)", (name,))

    store.change(insert)


def _make_segment(rows: Mapping[bytes, bytes]) -> tuple[str, bytes, Mapping[bytes, bytes]]:
    import pyarrow as pa

    table = pa.table({"key": pa.array(rows.keys(), pa.binary()), "value": pa.array(rows.values(), pa.binary())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content = sink.getvalue().to_pybytes()
    return _name(content), content, rows


def _name(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest() + SUFFIX


def _with_tables(db: sqlite3.Connection) -> sqlite3.Connection:
    db.execute("CREATE TABLE IF NOT EXISTS shared (key BLOB PRIMARY KEY) WITHOUT ROWID")
    db.execute("CREATE TABLE IF NOT EXISTS segments (name TEXT PRIMARY KEY) WITHOUT ROWID")
    return db
