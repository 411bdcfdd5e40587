"""How processes begin and end: the words typed, SIGTERM like Ctrl-C, no process outlives its parent."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextvars import ContextVar
from types import FrameType

TYPED: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
"""The words of the command that this process carries out, `ragbench` first; empty in scripts and notebooks."""

SAFE_PATH = ("PYTHONSAFEPATH", "ragbench")
"""An entry in the environment of child processes: a file `numpy.py` in the working directory is not imported."""

_LOOK_SECONDS = 0.5


def install_signal_handlers() -> None:
    """Make SIGTERM and SIGINT raise KeyboardInterrupt: finished work is kept, workers are ended, drafts are removed.

    A shell starts background commands with SIGINT ignored; this handler receives it there, too.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_with_parent(parent: int) -> None:
    """End this process as soon as the process `parent`, which started it, has ended for any reason.

    A thread checks: the kernel's signal for this (PR_SET_PDEATHSIG) comes when the parent's *thread* ends.
    """

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=look, name="end with parent", daemon=True).start()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
