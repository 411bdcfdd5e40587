"""Keep a bundle up to date with its documents while it is served: `ragbench refresh --watch` in another process.

A refresh takes CPU time and may fail; in another process neither affects searches.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

_LOG = logging.getLogger(__name__)

_AGAIN_SECONDS = 5.0
_PROGRAM = """
import sys
from ragbench.base import processes
from ragbench.commands import cli
processes.exit_with_parent(int(sys.argv[1]))
processes.install_signal_handlers()
sys.exit(cli.main(sys.argv[2:]))
"""


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
