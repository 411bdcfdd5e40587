"""Runs texts through a model one by one in a few threads.

Dynamic int8 quantisation takes its scale from everything in a call, so the result of a text would depend on the other
texts of its call; one text per call is also the fastest way on few cores. The libraries that run models release
Python's lock while they compute, so plain threads over one loaded model are enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

from ragbench.base.types import ConfigError

_T = TypeVar("_T")
_R = TypeVar("_R")


def threads_for(requested: int | None) -> int:
    """The number of threads to use: the one requested (at least 1), else one per CPU this process may use."""
    if requested is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if requested < 1:
        raise ConfigError(f"threads must be at least 1, got {requested}")
    return requested


def map_in_threads(
    work: Callable[[_T], _R], items: Sequence[_T], threads: int, progress: Callable[[int], None] | None = None
) -> list[_R]:
    """`[work(item) for item in items]`, computed by up to `threads` threads.

    No thread outlives the call: after the first failure, or Ctrl-C, each thread finishes its item and the failure is
    raised here. `progress` is called with 1 after every item, by one thread at a time.
    """
    report, lock = progress or (lambda done: None), Lock()

    def counted(item: _T) -> _R:
        result = work(item)
        with lock:
            report(1)
        return result

    if min(threads, len(items)) <= 1:
        return [counted(item) for item in items]
    pool = ThreadPoolExecutor(threads)
    try:
        return list(pool.map(counted, items))
    finally:
        pool.shutdown(cancel_futures=True)
