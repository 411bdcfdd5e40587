"""A log of searches for `ragbench topics from-log`, kept only if asked for.

One JSON object a line: `time`, `session`, `query` and `shown` (docnos, best first) of a search, or `time`, `session`
and `opened` of a document that is read. A session is a random name for one connection. No address is kept, and no query
in which personal data is recognised.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from starlette.requests import Request

from ragbench.base import registry
from ragbench.base.types import ConfigError

_LOG = logging.getLogger(__name__)
_KEY = secrets.token_bytes(16)


def new_session() -> str:
    """A random name that does not identify a user."""
    return secrets.token_hex(8)


def session_of(request: Request) -> str:
    """The name of the connection of an HTTP request, which does not tell its address."""
    if request.client is None:
        return new_session()
    address = f"{request.client.host} {request.client.port}".encode()
    return blake2b(address, digest_size=8, key=_KEY).hexdigest()


class SearchLog:
    """Adds lines to a file that only its owner may read. ConfigError when it cannot be written."""

    def __init__(self, path: Path) -> None:
        """Write nothing as a test, so that a wrong path is found before the first search."""
        if path.suffix != ".jsonl":
            raise ConfigError(f"--log {path} must be a .jsonl file: choose another name")
        self._personal = registry.required("hook", "personal_data", "--log")
        self._path = path
        self._failed = False
        self._torn = _ends_inside_a_line(path)
        try:
            self._add("")
        except OSError as error:
            raise ConfigError(
                f"--log {path} cannot be written ({error.strerror or error}): name another file"
            ) from None

    def log_search(self, session: str, query: str, docnos: Iterable[str]) -> None:
        """Log a search and the documents that were shown."""
        if self._personal(query):
            return
        self._write({"session": session, "query": query, "shown": list(dict.fromkeys(docnos))})

    def log_read(self, session: str, docno: str) -> None:
        """Log a document that was read."""
        self._write({"session": session, "opened": docno})

    def _write(self, row: Mapping[str, Any]) -> None:
        """Add a line; if it cannot be written, the search is answered all the same, and one message reports it."""
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": timestamp, **row}, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
        try:
            self._add(f"{line}\n")
        except OSError as error:
            if not self._failed:
                _LOG.error("searches are not logged: %s cannot be written (%s)", self._path, error.strerror or error)
            self._failed = True

    def _add(self, text: str) -> None:
        """Add text; the file is opened each time, so that it may be moved away while the service runs."""
        content = ("\n" * (self._torn and bool(text)) + text).encode("utf-8")
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if content and os.write(handle, content) < len(content):
                self._torn = True
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._torn = self._torn and not content
        finally:
            os.close(handle)


def _ends_inside_a_line(path: Path) -> bool:
    """Return True for a file that a killed service left with half a line."""
    try:
        with path.open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"
    except OSError:  # no file, or an empty one
        return False
