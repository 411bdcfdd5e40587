"""Changes of a folder of documents, gathered until it is quiet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

QUIET_MS = 200
"""A burst of changes is one change when no two of them lie further apart."""
_MOST_MS = 2_000  # so that a folder which is never quiet is refreshed all the same


def changes(folder: Path, stop: Event | None = None) -> Iterator[None]:
    """One item for every burst of changes below `folder`, until `stop` is set or Ctrl-C."""
    from watchfiles import watch

    for _ in watch(folder, debounce=_MOST_MS, step=QUIET_MS, stop_event=stop, raise_interrupt=True, watch_filter=None):
        yield
