"""How processes end: a request to end is an interruption like Ctrl-C, and none outlives the one that started it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

PARENT = "RAGBENCH_PARENT"
"""The variable with the process that a command is to end with; it is not handed on."""

_LOOK_SECONDS = 0.5


def end_on_signals() -> None:
    """Let SIGTERM and SIGINT raise KeyboardInterrupt: what is finished is kept, workers are ended, drafts are removed.

    A shell starts what it runs in the background with SIGINT ignored; here whoever sends it is heard. With `PARENT` in
    the environment, the end of that process is a request to end, too.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if (parent := os.environ.pop(PARENT, "")).isdigit():
        _when_gone(int(parent), lambda: os.kill(os.getpid(), signal.SIGTERM))


def end_with(parent: int) -> None:
    """End this process as soon as the process `parent`, which started it, has ended, however that came about.

    A thread looks: the kernel's signal for this (PR_SET_PDEATHSIG) comes when the parent's *thread* ends.
    """
    _when_gone(parent, lambda: os._exit(1))


def _when_gone(parent: int, end: Callable[[], None]) -> None:
    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        end()

    threading.Thread(target=look, name="end with parent", daemon=True).start()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
