"""How far a long command is: its arm, step, rows and the time left, measured once and shown anywhere.

A loop over rows calls a `Progress` with the name of a task, the rows done and all rows. The functions below
report to the one that is shown, if any: `steps` rows of a task, `ticks` and `track` rows of a part of one, `arm` for
which arm. The views (`ragbench.base.console`) only read the model.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

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


@dataclass(frozen=True)
class Step:
    """A step that is expected, and its seconds; `arm` is empty for what concerns all arms.

    `even`: its rows take alike, so that those which are done say what is left; stages do not.
    """

    task: str
    arm: str
    seconds: float
    even: bool = True


@dataclass
class _Task:
    """Rows of a task; `total` is 0 where the number of rows is not known. Times are seconds of the clock."""

    name: str
    arm: _Arm | None
    began: float
    done: int = 0
    total: int = 0
    marks: deque[tuple[float, int]] = field(default_factory=deque)

    def report(self, now: float, done: int, total: int) -> None:
        """Take in a report; rows that are done at the first one (in a cache) do not count for the rate."""
        self.done, self.total = done, total
        self.marks.append((now, done))
        while len(self.marks) > 2 and self.marks[1][0] <= now - _WINDOW:
            self.marks.popleft()

    def seconds_left(self, now: float) -> float | None:
        """The seconds left at the rate of the last minute; None where nothing was measured."""
        (since, before), (last, done), left = self.marks[0], self.marks[-1], self.total - self.done
        if left <= 0:
            return 0.0 if self.total else None
        if done <= before or last <= since:
            return None
        seconds_each = (last - since) / (done - before)
        return seconds_each * left - min(now - last, seconds_each)

    @property
    def rows(self) -> str:
        """The name and the rows, such as `embedding 611/2,044`."""
        return f"{self.name} {self.done:,}/{self.total:,}" if self.total else self.name


class Progress:
    """The state of a command: a task, optionally a part of it, the arm, expected steps."""

    def __init__(self, view: Nothing, clock: Callable[[], float] = time.monotonic) -> None:
        self.view = view
        self.clock = clock
        self.began = clock()
        self.task: _Task | None = None
        self.part: _Task | None = None
        self.arm: _Arm | None = None
        self._tasks: dict[tuple[str, str], _Task] = {}
        self._expected: dict[tuple[str, str], Step] = {}
        self._lock = threading.RLock()  # models report from their threads

    def __call__(self, task: str, done: int, total: int) -> None:
        """Report the rows of a task."""
        with self._lock:
            now, key = self.clock(), (self.arm.name if self.arm else "", task)
            new = key not in self._tasks
            if new or done < self._tasks[key].done:
                self._tasks[key] = _Task(task, self.arm, now)
            self.task, self.part = self._tasks[key], None
            self.task.report(now, done, total)
            self.view.changed(self, new)

    def report_part(self, name: str, done: int, total: int) -> None:
        """Report the rows of a part of the task, such as the hits that a stage re-ranks."""
        with self._lock:
            now = self.clock()
            if self.part is None or self.part.name != name or done < self.part.done:
                self.part = _Task(name, self.arm, now)
            self.part.report(now, done, total)
            self.view.changed(self, False)
            if total and done >= total:
                self.part = None

    def expect(self, steps: Sequence[Step]) -> None:
        """The steps to come, so that the time left of the whole command is known."""
        self._expected = {(step.arm, step.task): step for step in steps}

    @property
    def seconds_left(self) -> float | None:
        """The seconds left of the task, by its part where that is all that moves."""
        now = self.clock()
        of_task = self.task.seconds_left(now) if self.task else None
        if of_task is not None or self.part is None:
            return of_task
        return self.part.seconds_left(now)

    @property
    def all_seconds_left(self) -> float | None:
        """The seconds left of the command: expected steps at the pace so far; None where nothing was expected.

        A step is over when its rows are done, or another has begun.
        """
        if not self._expected:
            return None
        now = self.clock()
        begun = {key: task for key, task in self._tasks.items() if key in self._expected}
        over = {key: task for key, task in begun.items() if task is not self.task or 0 < task.total <= task.done}
        spent = sum(task.marks[-1][0] - task.began for task in over.values())
        promised = sum(self._expected[key].seconds for key in over)
        pace = min(4.0, max(0.25, spent / promised)) if promised > 1 else 1.0
        left = sum(step.seconds for key, step in self._expected.items() if key not in begun) * pace
        for key, task in begun.items():
            if key not in over:
                step = self._expected[key]
                of_task = task.seconds_left(now) if step.even else None
                guess = max(0.0, step.seconds * pace - (now - task.began))
                left += guess if of_task is None else of_task
        return left

    @property
    def line(self) -> str:
        """The state in one line: `arm 2 of 3 recommended  embedding 611/2,044  4 min left`."""
        if self.task is None:
            rows_text = self.part.rows if self.part else "working"
            return f"{rows_text}  {in_words(self.clock() - self.began)}"
        parts = [str(self.task.arm)] if self.task.arm else []
        parts.append(f"{self.task.rows}, {self.part.rows}" if self.part else self.task.rows)
        own_left, of_all = self.seconds_left, self.all_seconds_left
        spent = self.clock() - (self.part or self.task).began
        if own_left is None and spent >= 1:
            parts.append(f"{in_words(spent)} so far")
        elif own_left:
            parts.append(f"{in_words(own_left)} left")
        if of_all is not None and of_all > (own_left or 0) + 1:
            parts.append(f"about {in_words(of_all)} in total")
        return "  ".join(parts)


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


def expect(steps: Sequence[Step]) -> None:
    """Say which steps are to come."""
    if (progress := _shown.get()) is not None:
        progress.expect(steps)
