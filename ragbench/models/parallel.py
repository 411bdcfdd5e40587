"""Runs texts through a model one by one in a few threads.

Dynamic int8 quantisation takes its scale from everything in a call, so the result of a text would depend on the other
texts of its call; one text per call is also the fastest way on few cores. The libraries that run models release
Python's lock while they compute, so plain threads over one loaded model are enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
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
    """`[work(item) for item in items]`, computed by up to `threads` threads, including that of the caller.

    No thread outlives the call: after the first failure, or Ctrl-C, each thread finishes its item and the failure is
    raised here. `progress` is called with 1 after every item, by one thread at a time.
    """
    results: dict[int, _R] = {}
    failures: list[BaseException] = []
    todo = iter(range(len(items)))
    stop, lock = Event(), Lock()

    def worker() -> None:
        try:
            while not stop.is_set():
                with lock:
                    number = next(todo, None)
                if number is None:
                    return
                result = work(items[number])
                with lock:
                    results[number] = result
                    if progress is not None:
                        progress(1)
        except BaseException as failure:
            failures.append(failure)
            stop.set()

    others: list[Thread] = []
    try:
        for _ in range(min(threads, len(items)) - 1):
            thread = Thread(target=worker, daemon=True)
            thread.start()
            others.append(thread)
        worker()
        for thread in others:
            thread.join()
    finally:
        # After Ctrl-C while waiting above: no thread may be inside a model when the interpreter shuts down.
        stop.set()
        for thread in others:
            thread.join()
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(items))]
