"""Runs texts through a model one by one in a few threads.

Dynamic int8 quantisation takes its scale from everything in a call, so the result of a text would depend on the other
texts of its call; one text per call is also the fastest way on few cores. The libraries that run models release
Python's lock while they compute, so plain threads over one loaded model are enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TypeVar

from ragbench.base.errors import ConfigError

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
    """`[work(item) for item in items]`, computed by up to `threads` threads; one thread is that of the caller.

    No thread outlives the call: after the first failure, or Ctrl-C, each thread finishes its item and the failure is
    raised here. `progress` is called with 1 after every item, by the thread of the caller.
    """
    workers = min(threads, len(items))
    with ThreadPoolExecutor(workers) if workers > 1 else nullcontext() as pool:
        results = []
        try:
            for result in pool.map(work, items) if pool else map(work, items):
                results.append(result)
                if progress is not None:
                    progress(1)
        except BaseException:
            if pool:
                pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results
