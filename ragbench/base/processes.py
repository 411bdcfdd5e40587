"""How processes begin and end: the words typed, SIGTERM like Ctrl-C, no process outlives its parent."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType

PARENT = "RAGBENCH_PARENT"
"""The environment variable with the id of the process a command ends with; child processes do not get it."""

TYPED: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
"""The words of the command that this process carries out, `ragbench` first; empty in scripts and notebooks."""

SAFE_PATH = ("PYTHONSAFEPATH", "ragbench")
"""An entry in the environment of child processes: a file `numpy.py` in the working directory is not imported."""

_LOOK_SECONDS = 0.5


def install_signal_handlers() -> None:
    """Make SIGTERM and SIGINT raise KeyboardInterrupt: finished work is kept, workers are ended, drafts are removed.

    A shell starts background commands with SIGINT ignored; this handler receives it there, too. With `PARENT` in the
    environment, this process also ends when that process has ended.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if (parent := os.environ.pop(PARENT, "")).isdigit():
        _when_parent_ends(int(parent), lambda: os.kill(os.getpid(), signal.SIGTERM))


def exit_with_parent(parent: int) -> None:
    """End this process as soon as the process `parent`, which started it, has ended for any reason.

    A thread checks: the kernel's signal for this (PR_SET_PDEATHSIG) comes when the parent's *thread* ends.
    """
    _when_parent_ends(parent, lambda: os._exit(1))


def _when_parent_ends(parent: int, end: Callable[[], None]) -> None:
    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        end()

    threading.Thread(target=look, name="end with parent", daemon=True).start()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
