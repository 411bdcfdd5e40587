"""Reload a bundle in the background, when asked (SIGHUP) or when its folder changes, and keep it up to date.

`ragbench refresh --watch` runs in another process: it takes CPU time and may fail, and neither affects searches.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

from ragbench.base.errors import RagbenchError
from ragbench.extras.ship import bundle, generation
from ragbench.extras.ship.serving.service import SearchService
from ragbench.index import jvm

_LOG = logging.getLogger(__name__)

Signature = tuple[tuple[str, int, int, int], ...]
_AGAIN_SECONDS = 5.0
_PROGRAM = """
import sys
from ragbench.base import processes
from ragbench.commands import cli
processes.exit_with_parent(int(sys.argv[1]))
processes.install_signal_handlers()
sys.exit(cli.main(sys.argv[2:]))
"""


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
                if not current or not any(self._differs(current, name) for name in (bundle.RECORD, generation.NAME)):
                    changed = None  # the same, or missing while one folder replaces another, or a refresh is at work
                elif current != changed and self._differs(current, bundle.RECORD):
                    changed = current
                else:
                    self._seen, changed = current, None
                    self._reload()
        jvm.detach()

    def _differs(self, current: Signature, name: str) -> bool:
        """Whether the file of this name is another one than before."""
        before, now = ([entry for entry in files if entry[0] == name] for files in (self._seen, current))
        return before != now

    def _signature(self) -> Signature:
        return signature(self._service.folder) or self._service.engine_signature()

    def _reload(self) -> None:
        try:
            version = self._service.reload()
        except RagbenchError as error:
            _LOG.error(f"the bundle was not reloaded, the earlier one still answers ({error})")
        except Exception:
            _LOG.exception("the bundle was not reloaded, the earlier one still answers")
        else:
            _LOG.info(f"the bundle was reloaded, version {version} answers now")


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


class RefreshProcess:
    """A thread that runs the refreshing process, and starts it again when it ends unexpectedly."""

    def __init__(self, bundle: Path | str, corpus: Path) -> None:
        self._command = [
            *(sys.executable, "-P", "-c", _PROGRAM, str(os.getpid()), "refresh", str(bundle)),
            *("--corpus", str(corpus), "--watch", "--quiet"),
        ]
        self._stopped = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the process; a refresh under way leaves the bundle as it was."""
        self._stopped.set()
        with self._lock:
            if self._process is not None:
                self._process.terminate()
        self._thread.join(5.0)

    def _run(self) -> None:
        while not self._stopped.is_set():
            with self._lock:
                if self._stopped.is_set():
                    return
                # Its output is for people who run the command; its warnings also belong to the service.
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="backslashreplace",
                    start_new_session=True,
                )
            with self._process as process:
                for line in process.stderr or ():
                    if not self._stopped.is_set():  # then it says "interrupted", which is expected
                        _LOG.info(line.rstrip())
            status = process.returncode
            if not self._stopped.is_set():
                _LOG.warning(f"the process that refreshes ended (status {status}) and is started again")
                self._stopped.wait(_AGAIN_SECONDS)
