"""Views of a progress on stderr: a line of a terminal, lines of a pipe, a notebook, JSON."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from ragbench.base.progress import Progress

if TYPE_CHECKING:
    from rich.live import Live

BEAT = 20.0
"""Seconds after which a pipe gets another line: half a minute is the longest silence."""
_OFTEN = 0.2
"""Seconds between two changes of what is drawn."""


class Nothing:
    """Shows nothing."""

    shows = False

    def changed(self, progress: Progress, new: bool) -> None:
        """As the protocol."""

    def hidden(self) -> AbstractContextManager[object]:
        """Nothing is in the way of what is printed."""
        return nullcontext()


class _Drawn(Nothing):
    """A display that reads the progress by itself, several times a second, while `live` is started."""

    shows = True

    def __init__(self, new_live: Callable[[], Live]) -> None:
        self._new_live = new_live

    def start(self) -> None:
        """Draw with a new `Live`: one that is started again first erases as many lines as it drew before."""
        self.live = self._new_live()
        self.live.start()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Stop drawing, and begin again below what was printed."""
        self.live.stop()
        try:
            yield
        finally:
            self.start()


class Pipe(Nothing):
    """A line for every task when it begins, for every note, and whenever the last line is `BEAT` seconds old."""

    shows = True

    def __init__(self, write: Callable[[str], None] | None = None) -> None:
        self._write = write or (lambda line: print(line, file=sys.stderr, flush=True))
        self._note = ""
        self._last = float("-inf")

    def changed(self, progress: Progress, new: bool) -> None:
        """Print the line if it is time."""
        if progress.note != self._note:
            self._note = progress.note
            self._write(progress.note)
        if new or progress.clock() - max(self._last, progress.began) >= BEAT:
            self._last = progress.clock()
            self._write(progress.line)


class JsonLines(Nothing):
    """Lines of JSON: a task at its beginning, at its end and at most five times a second; notes."""

    shows = True

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], float] = {}
        self._note = ""

    def changed(self, progress: Progress, new: bool) -> None:
        """Print what a program wants to know."""
        if progress.note != self._note:
            self._note = progress.note
            _print_json({"note": progress.note})
            return
        task, now = progress.task, progress.clock()
        if task is None:
            return
        key = (task.arm.name if task.arm else "", task.name)
        over = task.done >= task.total and progress.part is None
        if over or new or now - self._said.get(key, -1.0) >= _OFTEN:
            self._said[key] = now
            of_arm = {"arm": task.arm.name, "number": task.arm.number, "of": task.arm.count} if task.arm else {}
            part = {"part": progress.part.rows} if progress.part else {}
            times = {"left": progress.seconds_left, "all_left": progress.all_seconds_left}
            known = {name: round(value, 1) for name, value in times.items() if value is not None}
            _print_json({"progress": task.name, "done": task.done, "total": task.total, **of_arm, **part, **known})


class Notebook(Nothing):
    """A bar as plain HTML that is emptied at the end: a widget would stay in the saved notebook."""

    shows = True

    def __init__(self) -> None:
        self._handle: Any = None
        self._drawn = 0.0

    def changed(self, progress: Progress, new: bool) -> None:
        """Draw the line and a bar, at most five times a second."""
        from html import escape

        from IPython.display import display

        if self._handle is None:
            self._handle = display({"text/plain": ""}, raw=True, display_id=True)  # type: ignore[no-untyped-call] # IPython's
        if progress.clock() - self._drawn < _OFTEN:
            return
        self._drawn = progress.clock()
        task = progress.task
        bar = f" <progress value='{task.done}' max='{task.total}'></progress>" if task and task.total else ""
        note = f"<div>{escape(progress.note)}</div>" if progress.note else ""
        html = f"<div>{escape(progress.line)}{bar}</div>{note}"
        self._handle.update({"text/plain": "", "text/html": html}, raw=True)

    def close(self) -> None:
        """Leave nothing."""
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


@contextmanager
def in_terminal() -> Iterator[Progress]:
    """One line that moves, a note below it; nothing of it stays."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    spinner = Spinner("dots")
    screen = Console(stderr=True)
    beside = sys.stdout.isatty()  # what goes to a file or a pipe is not drawn

    def drawn() -> Group:
        spinner.update(text=Text(progress.line, overflow="ellipsis", no_wrap=True))
        return Group(spinner, *([Text(progress.note)] if progress.note else []))

    def new_live() -> Live:
        return Live(get_renderable=drawn, console=screen, transient=True, refresh_per_second=5, redirect_stdout=beside)

    view = _Drawn(new_live)
    progress = Progress(view)
    view.start()
    try:
        yield progress
    finally:
        view.live.stop()


@contextmanager
def in_pipe() -> Iterator[Progress]:
    """Lines, also while a step reports nothing."""
    view = Pipe()
    progress, over = Progress(view), threading.Event()

    def beat() -> None:
        while not over.wait(1.0):
            view.changed(progress, False)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        over.set()
        thread.join()


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value), file=sys.stderr, flush=True)
