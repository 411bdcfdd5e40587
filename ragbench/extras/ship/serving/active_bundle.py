"""The bundle that answers now, which another may replace while searches run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ragbench.base.fingerprint import short_digest
from ragbench.extras.ship.loaded_bundle import LoadedBundle
from ragbench.extras.ship.opening import load
from ragbench.models.access import Models


@dataclass
class OpenBundle:
    """An open bundle, a name for its content, and how many searches use it."""

    bundle: LoadedBundle
    version: str
    users: int = 0
    retired: bool = False


def open_bundle(
    folder: Path | str,
    threads: int | None = None,
    models: Models | None = None,
) -> OpenBundle:
    """Open a bundle and search it once, so that no request has to wait for late loading.

    `threads` limits the threads of one call of a model; `models` shares the models of another bundle. Raises
    BundleError, IndexError_ and ModelError as `load` does.
    """
    bundle = load(folder, threads=threads, models=models)
    bundle.search("warm up", 1)
    return OpenBundle(bundle, short_digest([bundle.record, bundle.serves.collection, bundle.serves.artefacts]))


class CurrentBundle:
    """Lends the current bundle; a replaced bundle is closed when its last search has ended."""

    def __init__(self, opened: OpenBundle) -> None:
        self._lock = threading.Lock()
        self._opened = opened

    @property
    def active(self) -> OpenBundle:
        """The bundle that answers now, to inspect it; to search in it, take a lease."""
        return self._opened

    @contextmanager
    def lease(self) -> Iterator[OpenBundle]:
        """The current bundle, which stays open until the block ends."""
        with self._lock:
            opened = self._opened
            opened.users += 1
        try:
            yield opened
        finally:
            with self._lock:
                opened.users -= 1
                unused = opened.retired and opened.users == 0
            if unused:
                opened.bundle.close()

    def replace(self, successor: OpenBundle) -> None:
        """Make `successor` answer from now on; searches under way end in the earlier bundle."""
        with self._lock:
            previous, self._opened = self._opened, successor
        self._retire(previous)

    def close(self) -> None:
        """Close the bundle as soon as nothing uses it."""
        self._retire(self._opened)

    def _retire(self, opened: OpenBundle) -> None:
        with self._lock:
            unused = not opened.retired and opened.users == 0
            opened.retired = True
        if unused:
            opened.bundle.close()
