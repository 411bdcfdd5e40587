"""Watch a folder of documents, and report its changes when it is quiet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

from ragbench.extras.ship import generation

QUIET_MS = 100
"""Changes that follow each other within this time are one change."""
_MOST_MS = 2_000  # a folder that is never quiet is refreshed after this time
_LOOK_MS = 500


def changes(folder: Path, beside: Path, stop: Event | None = None) -> Iterator[None]:
    """Yield when it begins to watch, for every burst of changes below `folder`, and when the file `beside` is replaced.

    Changes that come while an item is handled give the next item. Ends when `stop` is set or with Ctrl-C.
    """
    from watchfiles import watch

    last_version, begun = None, False
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
        version = generation.file_version(beside)
        if burst or not begun or (version is not None and version != last_version):
            last_version, begun = version or last_version, True
            yield
