"""How far a long command is: its arm, step, rows and the time left, measured once and shown anywhere.

A loop over rows calls a `Progress` with the name of a task, the rows done and all rows. The functions below
report to the one that is shown, if any: `steps` rows of a task, `ticks` and `track` rows of a part of one, `arm` for
which arm. The views (`ragbench.base.console`) only read the model.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Task

_T = TypeVar("_T")

Report = Callable[[str, int, int], None]
"""Called with the name of a task, the rows done, and all rows."""

_WINDOW = 60.0
"""Seconds over which a rate is measured."""


class Nothing:
    """A view that shows nothing, and the base of those that do."""

    shows = False

    def changed(self, progress: Progress, new: bool) -> None:
        """Called after every report; `new` at the first one of a task."""

    def hidden(self) -> AbstractContextManager[object]:
        """Nothing is drawn meanwhile, so that something can be printed."""
        return nullcontext()


@dataclass(frozen=True)
class _Arm:
    """The arm that is worked on: its place among all, from 1."""

    number: int
    count: int
    name: str

    def __str__(self) -> str:
        return f"arm {self.number} of {self.count} {self.name}"


class Progress:
    """The state of a command: a task, optionally a part of it, the arm.

    `bars` holds both with their rates, and draws nothing by itself. A task has the fields `name` and `arm`.
    """

    def __init__(self, view: Nothing, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.progress import Progress as Bars

        self.view = view
        self.clock = clock
        self.began = clock()
        self.bars = Bars(get_time=clock, speed_estimate_period=_WINDOW, disable=True)
        self.task: Task | None = None
        self.part: Task | None = None
        self.arm: _Arm | None = None
        self._tasks: dict[tuple[str, str], Task] = {}
        self._lock = threading.RLock()  # models report from their threads

    def __call__(self, task: str, done: int, total: int) -> None:
        """Report the rows of a task."""
        with self._lock:
            key = (self.arm.name if self.arm else "", task)
            new = key not in self._tasks
            if new or done < self._tasks[key].completed:
                self._tasks[key] = self._begin(task, done, total)
            self.task = self._tasks[key]
            self._end_part()
            self.bars.update(self.task.id, completed=done, total=total or None)
            self.view.changed(self, new)

    def report_part(self, name: str, done: int, total: int) -> None:
        """Report the rows of a part of the task, such as the hits that a stage re-ranks."""
        with self._lock:
            if self.part is None or self.part.fields["name"] != name or done < self.part.completed:
                self._end_part()
                self.part = self._begin(name, done, total)
            self.bars.update(self.part.id, completed=done, total=total or None)
            self.view.changed(self, False)
            if total and done >= total:
                self._end_part()

    def _begin(self, name: str, done: int, total: int) -> Task:
        """A bar whose rate excludes the rows that are done already, since a cache had them."""
        arm = f"{self.arm}  " if self.arm else ""
        self.bars.add_task(f"{arm}{name}", total=total or None, completed=done, name=name, arm=self.arm)
        return self.bars.tasks[-1]

    def _end_part(self) -> None:
        if self.part is not None:
            self.bars.remove_task(self.part.id)
            self.part = None

    @property
    def seconds_left(self) -> float | None:
        """The seconds left of the task, by its part where that is all that moves; None where nothing was measured."""
        of_task = self.task.time_remaining if self.task else None
        return self.part.time_remaining if of_task is None and self.part else of_task

    @property
    def line(self) -> str:
        """The state in one line: `arm 2 of 3 recommended  embedding 611/2,044  4 min left`."""
        if self.task is None:
            return f"{rows(self.part) if self.part else 'working'}  {in_words(self.clock() - self.began)}"
        parts = [str(self.task.fields["arm"])] if self.task.fields["arm"] else []
        parts.append(f"{rows(self.task)}, {rows(self.part)}" if self.part else rows(self.task))
        left, spent = self.seconds_left, (self.part or self.task).elapsed or 0.0
        if left is None and spent >= 1:
            parts.append(f"{in_words(spent)} so far")
        elif left:
            parts.append(f"{in_words(left)} left")
        return "  ".join(parts)


def rows(task: Task) -> str:
    """The name of a task and its rows, such as `embedding 611/2,044`."""
    counts = f" {task.completed:,.0f}/{task.total:,.0f}" if task.total else ""
    return f"{task.fields['name']}{counts}"


def in_words(seconds: float) -> str:
    """A time such as `35 s` or `4 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


_shown: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def shown(progress: Progress) -> Iterator[Progress]:
    """What the functions below report to meanwhile."""
    token = _shown.set(progress)
    try:
        yield progress
    finally:
        _shown.reset(token)


def ticks(name: str, total: int) -> Callable[[int], None]:
    """A function to call, from any thread, with the number of rows of a part just finished; one row is not reported."""
    progress = _shown.get()
    return _counter(progress.report_part if progress and total > 1 else None, name, total)


def task_ticks(task: str, total: int) -> Callable[[int], None]:
    """A function to call, from any thread, with the number of rows of a task just finished."""
    return _counter(_shown.get(), task, total)


def _counter(report: Report | None, name: str, total: int) -> Callable[[int], None]:
    if report is None:
        return lambda n: None

    done, lock = 0, threading.Lock()
    report(name, 0, total)

    def tick(n: int) -> None:
        nonlocal done
        with lock:
            done += n
            report(name, done, total)

    return tick


def track(name: str, items: Sequence[_T]) -> Iterator[_T]:
    """The items, the rows of a part of a task: each is reported when the next one is requested."""
    tick = ticks(name, len(items))
    for item in items:
        yield item
        tick(1)


def steps(task: str, items: Sequence[_T]) -> Iterator[_T]:
    """The items, the rows of a task: each is reported when the next one is requested."""
    return counted(task, items, len(items)) if items else iter(())


def counted(task: str, items: Iterable[_T], total: int) -> Iterator[_T]:
    """The items, the `total` rows of a task: each is reported when the next one is requested."""
    tick = task_ticks(task, total)
    for item in items:
        yield item
        tick(1)


def report(task: str, done: int = 0, total: int = 0) -> None:
    """Report the rows of a task; a task without rows begins."""
    if (progress := _shown.get()) is not None:
        progress(task, done, total)


def part(name: str) -> None:
    """Report that a part of a task begins; nothing is known of its rows."""
    if (progress := _shown.get()) is not None:
        progress.report_part(name, 0, 0)


@contextmanager
def arm(number: int, count: int, name: str) -> Iterator[None]:
    """What is reported meanwhile is about one of several arms; `number` is from 1."""
    progress = _shown.get()
    if progress is None:
        yield
        return
    outer_arm, progress.arm = progress.arm, _Arm(number, count, name) if count > 1 else None
    try:
        yield
    finally:
        progress.arm = outer_arm


def is_shown() -> bool:
    """Return True if progress is reported anywhere."""
    return _shown.get() is not None


def watched() -> bool:
    """Return True if the progress is visible."""
    progress = _shown.get()
    return progress is not None and progress.view.shows


def hidden() -> AbstractContextManager[object]:
    """The progress is not drawn meanwhile: for an answer that is printed before the command ends."""
    progress = _shown.get()
    return nullcontext() if progress is None else progress.view.hidden()
