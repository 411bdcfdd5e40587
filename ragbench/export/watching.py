"""Changes of a folder of documents, gathered until it is quiet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

from ragbench import files

QUIET_MS = 100
"""A burst of changes is one change when no two of them lie further apart."""
_MOST_MS = 2_000  # so that a folder which is never quiet is refreshed all the same
_LOOK_MS = 500


def changes(folder: Path, beside: Path, stop: Event | None = None) -> Iterator[None]:
    """One item when it begins to watch, one for every burst of changes below `folder`, one when `beside` is exchanged.

    What changes while an item is dealt with gives the next one. Ends when `stop` is set or with Ctrl-C.
    """
    from watchfiles import watch

    seen, begun = None, False
    for burst in watch(
        folder,
        watch_filter=None,
        debounce=_MOST_MS,
        step=QUIET_MS,
        stop_event=stop,
        rust_timeout=_LOOK_MS,
        yield_on_timeout=True,
        raise_interrupt=True,
    ):
        now = files.file_version(beside)
        if burst or not begun or (now is not None and now != seen):
            seen, begun = now or seen, True
            yield
