"""How processes end: a request to end is an interruption like Ctrl-C, and none outlives the one that started it."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

_LOOK_SECONDS = 0.5


def end_on_sigterm() -> None:
    """Let SIGTERM raise KeyboardInterrupt: what is finished is kept, workers are ended, drafts are removed."""
    signal.signal(signal.SIGTERM, _interrupt)


def end_with(parent: int) -> None:
    """End this process as soon as the process `parent`, which started it, has ended, however that came about.

    A thread looks: the kernel's signal for this (PR_SET_PDEATHSIG) comes when the parent's *thread* ends.
    """

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=look, name="end with parent", daemon=True).start()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
