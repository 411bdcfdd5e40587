"""Processes that are given calls; those of this machine are started by loky: never forked, as Java may run in this one.

Each is an executor of one process, so that calls reuse what earlier ones loaded, and a process that dies fails only
the call that it was running.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

from ragbench.base import processes
from ragbench.base.errors import RagbenchError
from ragbench.base.files import unusable
from ragbench.base.processes import exit_with_parent

_T = TypeVar("_T")
Begin = tuple[Any, ...]
"""A function and its arguments, called first in every process; empty for none."""


@dataclass(frozen=True)
class Failure:
    """Why a task failed; `details` is the traceback of an unexpected error.

    Errors cross processes as this: many of them cannot be unpickled, which would look like the death of a process.
    """

    task: str
    reason: str
    details: str = ""
    error: BaseException | None = field(default=None, compare=False, repr=False)
    """The error itself, kept where the task ran in this process."""

    @staticmethod
    def of(task: str, error: BaseException) -> Failure:
        """The failure of a task that raised this error."""
        if isinstance(error, RagbenchError):
            return Failure(task, str(error))
        if isinstance(error, OSError):
            return Failure(task, unusable(error))
        first = (str(error).splitlines() or [""])[0]
        return Failure(task, f"{type(error).__name__}: {first}", "".join(traceback.format_exception(error)))


def run_captured(task: str, function: Callable[..., _T], *arguments: Any) -> _T | Failure:
    """What a function returns, or the `Failure` of a task: then only the death of its process raises in the driver."""
    try:
        return function(*arguments)
    except Exception as error:
        return Failure.of(task, error)


class Pool(Protocol):
    """Numbered processes, each doing one call at a time, as a context: they end with it."""

    count: int

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def submit(self, number: int, function: Callable[..., _T], *arguments: Any) -> Future[_T]:
        """Let a process call a function, after what it was given before."""

    def restart(self, number: int) -> None:
        """Replace a process that has died."""


class LocalPool:
    """`count` processes of this machine."""

    def __init__(self, count: int, begin: Begin = ()) -> None:
        self.count = count
        self._begin = begin
        self._executors: list[Any] = []

    def __enter__(self) -> Self:
        self._executors = [self._executor() for _ in range(self.count)]
        return self

    def __exit__(self, *exception: object) -> None:
        for executor in self._executors:
            executor.shutdown(wait=True, kill_workers=True)

    def submit(self, number: int, function: Callable[..., _T], *arguments: Any) -> Future[_T]:
        """Let a process call a function."""
        future: Future[_T] = self._executors[number].submit(function, *arguments)
        return future

    def restart(self, number: int) -> None:
        """Replace a process that has died."""
        self._executors[number].shutdown(wait=True, kill_workers=True)
        self._executors[number] = self._executor()

    def _executor(self) -> Any:
        from joblib.externals.loky import ProcessPoolExecutor

        # One thread for BLAS and OpenMP in each process, since the processes run in parallel.
        return ProcessPoolExecutor(
            max_workers=1,
            initializer=_begin,
            initargs=(os.getpid(), self._begin),
            env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **dict([processes.SAFE_PATH])},
        )


def _begin(parent: int, begin: Begin) -> None:
    exit_with_parent(parent)
    if begin:
        begin[0](*begin[1:])
