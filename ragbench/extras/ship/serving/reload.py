"""Reload a bundle in the background: when asked (SIGHUP), or when its folder changes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from ragbench.base.errors import RagbenchError
from ragbench.extras.ship import bundle, generation
from ragbench.extras.ship.serving.service import LOG, SearchService
from ragbench.index import jvm

Signature = tuple[tuple[str, int, int, int], ...]


class Reloader:
    """A thread that reloads the bundle of a service.

    `seen`: the signature of the folder before the service opened it. `poll_seconds`: the time between two looks whether
    the folder has changed (None: reload only when asked). Another bundle is loaded when it is the same at the next
    look, so that a bundle that is still being copied is not; a new generation of the bundle is loaded at once.
    """

    def __init__(self, service: SearchService, version: Signature, poll_seconds: float | None = None) -> None:
        self._service = service
        self._poll_seconds = poll_seconds
        self._wake = threading.Event()
        self._asked = self._stopped = False
        self._thread = threading.Thread(target=self._run, name="reload", daemon=True)
        self._seen = version or self._signature()
        self._thread.start()

    def ask(self) -> None:
        """Reload soon; may be called from a signal handler."""
        self._asked = True
        self._wake.set()

    def stop(self) -> None:
        """Stop reloading; a reload under way is abandoned."""
        self._stopped = True
        self._wake.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        changed: Signature | None = None
        while True:
            self._wake.wait(self._poll_seconds)
            self._wake.clear()
            if self._stopped:
                break
            if self._asked:
                self._asked, changed = False, None
                self._seen = self._signature()
                self._reload()
            elif self._poll_seconds is not None:
                current = self._signature()
                if not current or (
                    _record(current) == _record(self._seen) and _published(current) == _published(self._seen)
                ):
                    changed = None  # the same, or missing while one folder replaces another, or a refresh is at work
                elif current != changed and _record(current) != _record(self._seen):
                    changed = current
                else:
                    self._seen, changed = current, None
                    self._reload()
        jvm.detach()

    def _signature(self) -> Signature:
        return signature(self._service.folder) or self._service.engine_signature()

    def _reload(self) -> None:
        try:
            version = self._service.reload()
        except RagbenchError as error:
            LOG.error(f"the bundle was not reloaded, the earlier one still answers ({error})")
        except Exception:
            LOG.exception("the bundle was not reloaded, the earlier one still answers")
        else:
            LOG.info(f"the bundle was reloaded, version {version} answers now")


def _record(files: Signature) -> Signature:
    return tuple(entry for entry in files if entry[0] == bundle.RECORD)


def _published(files: Signature) -> Signature:
    return tuple(entry for entry in files if entry[0] == generation.NAME)


def signature(folder: Path | str) -> Signature:
    """Name, inode, time and size of every file of a bundle, without Lucene's lock; empty when there is none."""
    if isinstance(folder, str):  # the address of an engine, which the service asks
        return ()
    if folder.is_file():  # an engine in a file, which is all of it
        facts = folder.stat()
        return ((bundle.RECORD, facts.st_ino, facts.st_mtime_ns, facts.st_size),)
    entries = []
    for directory, _, names in os.walk(folder):  # skips folders that disappear, such as those of a refresh
        for name in names:
            path = Path(directory, name)
            try:
                facts = path.stat()
            except OSError:  # it has disappeared
                continue
            if name != "write.lock":
                entries.append((path.relative_to(folder).as_posix(), facts.st_ino, facts.st_mtime_ns, facts.st_size))
    return tuple(sorted(entries))
