"""The bundle that answers now, replaced by another while searches go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ragbench.export.loaded_bundle import LoadedBundle, load
from ragbench.fingerprint import short_digest
from ragbench.models.access import Models


@dataclass
class Opened:
    """An open bundle, a name for its content, and how many searches use it."""

    bundle: LoadedBundle
    version: str
    users: int = 0
    retired: bool = False


def open_bundle(
    folder: Path, threads: int | None = None, models: Models | None = None, key: Path | None = None
) -> Opened:
    """Open a bundle and search it once, so that no request pays for what is loaded late.

    `threads` limits the threads of one call of a model; `models` are those of another bundle, `key` is the file of the
    public key that it must be signed with. Raises BundleError, IndexError_ and ModelError like `load`.
    """
    bundle = load(folder, key=key, threads=threads, models=models)
    bundle.search("warm up", 1)
    return Opened(bundle, short_digest([bundle.record, bundle.serves.collection, bundle.serves.artefacts]))


class CurrentBundle:
    """Lends the current bundle; one that was replaced is closed when the last search in it has ended."""

    def __init__(self, opened: Opened) -> None:
        self._lock = threading.Lock()
        self._opened = opened

    @property
    def opened(self) -> Opened:
        """What answers now, for looking at; to search in it, take a lease."""
        return self._opened

    @contextmanager
    def lease(self) -> Iterator[Opened]:
        """The current bundle, which stays open for as long as the block lasts."""
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

    def replace(self, successor: Opened) -> None:
        """From now on `successor` answers; searches under way end where they began."""
        with self._lock:
            before, self._opened = self._opened, successor
        self._retire(before)

    def close(self) -> None:
        """Close the bundle as soon as nothing uses it."""
        self._retire(self._opened)

    def _retire(self, opened: Opened) -> None:
        with self._lock:
            unused = not opened.retired and opened.users == 0
            opened.retired = True
        if unused:
            opened.bundle.close()
