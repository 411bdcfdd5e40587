"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(true: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until something is true, however busy the machine is; an AssertionError after `seconds`."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not true after {seconds:g} s"
        time.sleep(0.05)
