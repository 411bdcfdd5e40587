"""Terminal output: answers and tables on stdout, progress bars and messages on stderr."""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import re
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

from ragbench.base.progress import Nothing, Progress, Report, is_shown, rows, shown

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    Rows = Sequence[Mapping[str, Any]]


SCREEN = 80
"""Columns of the screens that fit everywhere."""
_PIPE = 240
"""Columns for a pipe, which has none: the room that tables need."""


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """The configuration overrides that most commands take."""
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help="settings, such as exp=recommended rerank=on (see ragbench list)",
    )


def add_arms(parser: argparse.ArgumentParser) -> None:
    """`--arm`, any number of times; `ragbench.config.overrides.named_arms` reads them."""
    usage = 'NAME="SETTINGS"'
    parser.add_argument(
        "--arm",
        action="append",
        default=[],
        metavar=usage,
        help='add an arm (configuration): its name and settings, such as mine="rerank=on" (repeatable)',
    )


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """What the commands that run arms share: arms, overrides, width, output."""
    add_arms(parser)
    add_overrides(parser)
    parser.add_argument("--wide", action="store_true", help="print every table instead of one screen")
    add_output(parser)


def add_runs(parser: argparse.ArgumentParser, many: str) -> None:
    """Runs and overrides in one list of words; `many` is "?" for one run, "*" for several, the newest by default."""
    named = "a run: folder, part of its name, @1 (newest, the default) or @1/ARM; settings"
    parser.add_argument(
        "words", nargs="*", metavar="run|key=value", help=named if many == "?" else f"{named}; TREC run files"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """`--json` and `--quiet`."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON to standard output")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress bars")


_COMMANDS = re.compile("\x1b(?!\\[[0-9;?]*[A-Za-z])|[\0-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")


class _GuardedTerminal:
    """A terminal that shows control characters as codes, except those of colours and positions, which we print too.

    Notes, queries and names of arms come from others: `ESC ] 52` would write to the clipboard.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        self._stream.write(_COMMANDS.sub(lambda match: match[0].encode("unicode_escape").decode(), text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def guarding_terminals() -> Iterator[None]:
    """Pass no commands to terminals from texts that are printed inside the block."""
    streams = sys.stdout, sys.stderr
    guarded = (cast("TextIO", _GuardedTerminal(stream)) if stream.isatty() else stream for stream in streams)
    sys.stdout, sys.stderr = guarded
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


class _Messages(logging.Handler):
    """Prints messages on standard error: a warning and an error after their level, others as they are."""

    def emit(self, record: logging.LogRecord) -> None:
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        print(level + self.format(record), file=sys.stderr)


def show_messages(level: int | None = None) -> None:
    """Print what ragbench logs from now on, from a level: by default that of the logger `ragbench`, or else INFO."""
    logger = logging.getLogger("ragbench")
    logger.setLevel(level or logger.level or logging.INFO)
    logger.propagate = False
    if not any(isinstance(handler, _Messages) for handler in logger.handlers):
        logger.addHandler(_Messages())


def next_command(arguments: str) -> None:
    """Print the command to type next."""
    print(f"next: ragbench {arguments}")


PROGRESS = "RAGBENCH_PROGRESS"
"""The environment variable that asks, with the value `lines`, for progress as lines of JSON on standard error."""


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """The progress of a command on standard error: a line of a terminal, a notebook, or lines of a pipe.

    `RAGBENCH_PROGRESS=lines` asks for lines of JSON instead. Nothing is shown when quiet.
    """
    with _viewed(quiet) as view, shown(view):
        yield view


def progress_to(report: Report | None) -> AbstractContextManager[object]:
    """Progress goes to `report`; by default to what is shown already, or else to a new display."""
    if report is not None:
        return shown(report if isinstance(report, Progress) else _Reported(report))
    return nullcontext() if is_shown() else progress()


class _Reported(Progress):
    """Calls a function with the rows of every task; shows nothing."""

    def __init__(self, report: Report) -> None:
        super().__init__(Nothing())
        self._report = report

    def __call__(self, task: str, done: int, total: int) -> None:
        super().__call__(task, done, total)
        self._report(task, done, total)


@contextmanager
def _viewed(quiet: bool) -> Iterator[Progress]:
    if os.environ.get(PROGRESS) == "lines":
        yield Progress(_JsonLines())
    elif quiet:
        yield Progress(Nothing())
    elif "ipykernel" in sys.modules:
        notebook = Notebook()
        try:
            yield Progress(notebook)
        finally:
            notebook.close()
    else:
        with in_terminal() if sys.stderr.isatty() else _in_pipe() as view:
            yield view


def print_json(value: Any) -> None:
    """Print a value as JSON to stdout: data frames as records, dataclasses as mappings, NaN and infinities as null."""
    escapes = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")  # a terminal that cannot show all signs
    print(json.dumps(_strict(value), indent=1, ensure_ascii=escapes, default=str))


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _strict(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _strict(item) for key, item in value.items()}
    if hasattr(value, "to_dict"):
        return _strict(value.to_dict(orient="records"))
    return [_strict(item) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class _TextColumn:
    """A column of a table as text."""

    heading: str
    cells: Sequence[str]
    is_number: bool

    @property
    def widest(self) -> int:
        """Characters of the longest cell or of the heading."""
        return max(map(len, (self.heading, *self.cells)))

    @property
    def narrowest(self) -> int:
        """Characters of what is never broken: a number, or the longest word of a text."""
        words = (word for text in (self.heading, *self.cells) for word in text.split())
        return self.widest if self.is_number else max(map(len, words), default=0)


def _columns(table: pd.DataFrame | Rows, formats: Mapping[str, str] | None) -> list[_TextColumn]:
    if isinstance(table, Sequence):
        columns = {name: [row.get(name) for row in table] for name in dict.fromkeys(chain.from_iterable(table))}
        numbers = {name for name in columns if {*map(type, columns[name])} <= {int, float, type(None)}}
    else:
        columns = {str(name): list(values) for name, values in table.items()}
        numbers = {str(name) for name, kind in table.dtypes.items() if kind.kind in "fiu"}
    return [
        _TextColumn(name, [_cell(value, (formats or {}).get(name)) for value in values], name in numbers)
        for name, values in columns.items()
    ]


def print_table(
    table: pd.DataFrame | Rows, title: str = "", formats: Mapping[str, str] | None = None, in_pipe: int = _PIPE
) -> None:
    """A data frame or rows on standard output; numbers to the right, with four decimals unless `formats` says else.

    Columns that do not fit the terminal, or `in_pipe` characters of a pipe, stand in further tables below, each of
    which begins with the first column.
    """
    if title:
        print_text(title)
    columns, width = _columns(table, formats), _width(in_pipe)
    while columns:
        count = _count_that_fits(width, columns)
        render(_table(columns[:count], width), in_pipe)
        columns = [columns[0], *columns[count:]] if count < len(columns) else []


def print_text(*sentences: str, in_pipe: int = sys.maxsize) -> None:
    """Print sentences on standard output; lines that are too long for the terminal are broken between words only.

    In a pipe, lines have at most `in_pipe` characters; by default each sentence is one line.
    """
    for sentence in sentences:
        fits_whole = len(sentence) <= (width := _width(in_pipe))
        print(
            sentence if fits_whole else textwrap.fill(sentence, width, break_long_words=False, break_on_hyphens=False)
        )


def render(table: Table, in_pipe: int = _PIPE) -> None:
    """Print a table on standard output, in lines without blanks at their ends."""
    from rich.console import Console

    screen = Console(width=_width(in_pipe))
    with screen.capture() as captured:
        screen.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _width(in_pipe: int = _PIPE) -> int:
    """Return the columns of the terminal, or those for a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else in_pipe


def _count_that_fits(width: int, columns: Sequence[_TextColumn]) -> int:
    """How many of the columns fit the width, at least two: numbers whole, texts broken between words."""
    width_left = width - 1
    for number, column in enumerate(columns):
        width_left -= 3 + column.narrowest
        if width_left < 0:
            return min(max(2, number), len(columns))
    return len(columns)


def _table(columns: Sequence[_TextColumn], screen_width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    widths = {column.heading: column.narrowest for column in columns}
    spare = screen_width - 1 - 3 * len(columns) - sum(widths.values())
    by_need = sorted(columns, key=lambda column: column.widest - column.narrowest)
    for excess, column in enumerate(by_need):
        more = max(0, min(column.widest - column.narrowest, spare // (len(columns) - excess)))
        widths[column.heading] += more
        spare -= more
    table = Table()
    for column in columns:
        width = widths[column.heading] if spare >= 0 else None  # one word is longer than the screen
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(column.heading, justify=justify, no_wrap=column.is_number, width=width)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _cell(value: Any, form: str | None) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return format(value, form or ".4f")
    return str(value)


def columns(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The columns of these names that exist, in this order."""
    return frame[[name for name in names if name in frame.columns]]


def markdown(frame: pd.DataFrame, formats: Mapping[str, str] | None = None) -> str:
    """A data frame as a markdown table; numbers with four decimals unless `formats` says otherwise."""
    columns = _columns(frame, formats)
    head = f"| {' | '.join(column.heading for column in columns)} |"
    rule = "|" + "|".join("---:" if column.is_number else "---" for column in columns) + "|"
    rows = zip(*([cell.replace("|", "\\|") for cell in column.cells] for column in columns), strict=True)
    return "\n".join([head, rule, *(f"| {' | '.join(row)} |" for row in rows)])


def latex(frame: pd.DataFrame) -> str:
    """A data frame as a LaTeX `tabular` with rules from booktabs; numbers to the right, with four decimals."""
    sides = "".join("r" if values.dtype.kind in "fiu" else "l" for _, values in frame.items())
    return frame.to_latex(index=False, escape=True, float_format="%.4f", na_rep="", column_format=sides).rstrip()


_BEAT = 20.0
"""Seconds after which a pipe gets another line: half a minute is the longest silence."""

_OFTEN = 0.2
"""Seconds between two changes of what is drawn."""


class _Terminal(Nothing):
    """A bar for the task and one for its part; nothing of them stays. It reads the progress several times a second."""

    shows = True

    def __init__(self) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.table import Column

        self.progress = Progress(self)
        name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        counts, left = MofNCompleteColumn(), TimeRemainingColumn(compact=True)
        self.progress.bars.columns = (SpinnerColumn(), name, BarColumn(20), counts, TimeElapsedColumn(), left)
        self.start()

    def start(self) -> None:
        """Draw with a new `Live`: one that is started again first erases as many lines as it drew before."""
        from rich.console import Console
        from rich.live import Live

        beside = sys.stdout.isatty()  # what goes to a file or a pipe is not drawn
        self.live = Live(
            get_renderable=self._drawn,
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=5,
            redirect_stdout=beside,
        )
        self.live.start()

    def _drawn(self) -> Table:
        shown = (self.progress.task, self.progress.part)
        return self.progress.bars.make_tasks_table([task for task in shown if task is not None])

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Stop drawing, and begin again below what was printed."""
        self.live.stop()
        try:
            yield
        finally:
            self.start()


class Pipe(Nothing):
    """A line for every task when it begins, and whenever the last line is `_BEAT` seconds old."""

    shows = True

    def __init__(self, write: Callable[[str], None] | None = None) -> None:
        self._write = write or (lambda line: print(line, file=sys.stderr, flush=True))
        self._last = float("-inf")

    def changed(self, progress: Progress, new: bool) -> None:
        """Print the line if it is time."""
        if new or progress.clock() - max(self._last, progress.began) >= _BEAT:
            self._last = progress.clock()
            self._write(progress.line)


class _JsonLines(Nothing):
    """Lines of JSON: a task at its beginning, at its end and at most five times a second."""

    shows = True

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], float] = {}

    def changed(self, progress: Progress, new: bool) -> None:
        """Print what a program wants to know."""
        task, now = progress.task, progress.clock()
        if task is None:
            return
        name, arm = task.fields["name"], task.fields["arm"]
        key = (arm.name if arm else "", name)
        over = task.completed >= (task.total or 0) and progress.part is None
        if over or new or now - self._said.get(key, -1.0) >= _OFTEN:
            self._said[key] = now
            of_arm = {"arm": arm.name, "number": arm.number, "of": arm.count} if arm else {}
            part = {"part": rows(progress.part)} if progress.part else {}
            left = {"left": progress.seconds_left} if progress.seconds_left is not None else {}
            counts = {"progress": name, "done": int(task.completed), "total": int(task.total or 0)}
            print(json.dumps({**counts, **of_arm, **part, **left}), file=sys.stderr, flush=True)


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
        bar = f" <progress value='{task.completed}' max='{task.total}'></progress>" if task and task.total else ""
        html = f"<div>{escape(progress.line)}{bar}</div>"
        self._handle.update({"text/plain": "", "text/html": html}, raw=True)

    def close(self) -> None:
        """Leave nothing."""
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


@contextmanager
def in_terminal() -> Iterator[Progress]:
    """Bars that move."""
    view = _Terminal()
    try:
        yield view.progress
    finally:
        view.live.stop()


@contextmanager
def _in_pipe() -> Iterator[Progress]:
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
