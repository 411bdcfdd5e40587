"""The threads that search, and the bounded queue before them."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from ragbench.index import jvm

T = TypeVar("T")

_SMOOTHING = 0.1
"""The weight of the latest task in the mean time of a task."""


class Busy(Exception):
    """The queue is full; `retry_after` is the number of seconds (at least 1) until it should have room."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"the queue is full for about {retry_after} s")
        self.retry_after = retry_after


class Workers(Generic[T]):
    """`count` threads that do tasks in the order of their arrival; at most `waiting` tasks wait for one of them.

    The threads are daemons: a search that never ends cannot keep the process from ending.
    """

    def __init__(self, count: int, waiting: int) -> None:
        self._tasks: queue.Queue[tuple[Callable[[], T], Future[T]] | None] = queue.Queue(waiting)
        self._mean_seconds = 0.0
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"search-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        """The tasks that wait."""
        return self._tasks.qsize()

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Queue a task; it is skipped if its future is cancelled before its turn. Raises Busy if the queue is full."""
        future: Future[T] = Future()
        if self._closed:
            raise Busy(1)
        try:
            self._tasks.put_nowait((task, future))
        except queue.Full:
            ahead = self._tasks.maxsize / len(self._threads)
            raise Busy(max(1, math.ceil(ahead * self._mean_seconds))) from None
        return future

    def close(self, seconds: float) -> None:
        """Take no more tasks, end those that wait with Busy, and give those that run `seconds` to end."""
        self._closed = True
        try:
            while True:
                waiting = self._tasks.get_nowait()
                if waiting is not None and waiting[1].set_running_or_notify_cancel():
                    waiting[1].set_exception(Busy(1))
        except queue.Empty:
            pass
        deadline = time.monotonic() + seconds
        try:
            for _ in self._threads:
                self._tasks.put(None, timeout=max(0.0, deadline - time.monotonic()))
        except queue.Full:  # some threads still search: they are abandoned
            pass
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (entry := self._tasks.get()) is not None:
            task, future = entry
            if not future.set_running_or_notify_cancel():
                continue
            started = time.perf_counter()
            try:
                result = task()
            except BaseException as error:  # the caller that waits for the future handles it
                future.set_exception(error)
            else:
                future.set_result(result)
            del task, future, entry  # so that objects of a task are freed before the next one arrives
            self._mean_seconds += _SMOOTHING * (time.perf_counter() - started - self._mean_seconds)
        jvm.detach()
