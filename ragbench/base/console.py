"""Terminal output: answers and tables on stdout, progress bars and messages on stderr."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

from ragbench.base.progress import Progress, Report, is_shown, shown

if TYPE_CHECKING:
    import pandas as pd
    from rich.live import Live
    from rich.table import Table


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
    """What the commands that run arms share: plan, arms, overrides, width, output."""
    parser.add_argument(
        "--explain-plan", action="store_true", help="print the steps that would be computed or reused, and exit"
    )
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


class _Terminal:
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
    guarded = (cast("TextIO", _Terminal(stream)) if stream.isatty() else stream for stream in streams)
    sys.stdout, sys.stderr = guarded
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def say(message: str) -> None:
    """One sentence on standard error."""
    print(message, file=sys.stderr)


def short_path(path: Path | str) -> str:
    """A path as short as it can be typed: relative to the working directory if it is below it. A text stays."""
    if isinstance(path, str):
        return path
    current_folder = Path.cwd()
    return str(path.relative_to(current_folder) if path.is_relative_to(current_folder) else path)


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
    print(json.dumps(_strict(value), indent=1, ensure_ascii=False, default=str))


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


def print_table(
    frame: pd.DataFrame, title: str = "", formats: Mapping[str, str] | None = None, in_pipe: int = _PIPE
) -> None:
    """A data frame on standard output; numbers to the right, with four decimals unless `formats` says otherwise.

    Columns that do not fit the terminal, or `in_pipe` characters of a pipe, stand in further tables below, each of
    which begins with the first column.
    """
    if title:
        print_text(title)
    names, width = list(frame.columns), _width(in_pipe)
    while names:
        fits = _columns_that_fit(width, frame, names, formats)
        render(_table(frame, names[:fits], formats, width), in_pipe)
        names = [names[0], *names[fits:]] if fits < len(names) else []


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


def _columns_that_fit(width: int, frame: pd.DataFrame, names: Sequence[Any], formats: Mapping[str, str] | None) -> int:
    """How many of the columns fit the width, at least two: numbers whole, texts broken between words."""
    width_left = width - 1
    for number, name in enumerate(names):
        cells = [str(name), *(_cell(value, (formats or {}).get(str(name))) for value in frame[name])]
        is_number = frame[name].dtype.kind in "fiu"
        width_left -= 3 + (max(map(len, cells)) if is_number else _longest_word(cells))
        if width_left < 0:
            return min(max(2, number), len(names))
    return len(names)


def _longest_word(cells: Sequence[str]) -> int:
    """Characters of the longest word."""
    return max((len(word) for cell in cells for word in cell.split()), default=0)


def _table(frame: pd.DataFrame, names: Sequence[Any], formats: Mapping[str, str] | None, screen_width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    numeric = {name for name in names if frame[name].dtype.kind in "fiu"}
    cells = {
        name: [str(name), *(_cell(value, (formats or {}).get(str(name))) for value in frame[name])] for name in names
    }
    needed = {name: max(map(len, column_cells)) for name, column_cells in cells.items()}
    widths = {
        name: needed[name] if name in numeric else _longest_word(column_cells) for name, column_cells in cells.items()
    }
    spare = screen_width - 1 - 3 * len(names) - sum(widths.values())
    for excess, name in enumerate(sorted(names, key=lambda name: needed[name] - widths[name])):
        more = max(0, min(needed[name] - widths[name], spare // (len(names) - excess)))
        widths[name] += more
        spare -= more
    for name in names:
        justify: Literal["left", "right"] = "right" if name in numeric else "left"
        width = widths[name] if spare >= 0 else None  # one word is longer than the screen
        table.add_column(str(name), justify=justify, no_wrap=name in numeric, width=width)
    for row in zip(*(cells[name][1:] for name in names), strict=True):
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
    names = [str(name) for name in frame.columns]
    numeric = [frame[name].dtype.kind in "fiu" for name in frame.columns]
    head = f"| {' | '.join(names)} |"
    rule = "|" + "|".join("---:" if right else "---" for right in numeric) + "|"
    rows = [
        "| "
        + " | ".join(_cell(row[name], (formats or {}).get(str(name))).replace("|", "\\|") for name in frame.columns)
        + " |"
        for row in frame.to_dict(orient="records")
    ]
    return "\n".join([head, rule, *rows])


def latex(frame: pd.DataFrame) -> str:
    """A data frame as a LaTeX `tabular` with rules from booktabs."""
    numeric = [frame[name].dtype.kind in "fiu" for name in frame.columns]
    lines = [
        r"\begin{tabular}{" + "".join("r" if right else "l" for right in numeric) + "}",
        r"\toprule",
        " & ".join(_escape_latex(str(name)) for name in frame.columns) + r" \\",
        r"\midrule",
        *(
            " & ".join(_escape_latex(_cell(row[name], None)) for name in frame.columns) + r" \\"
            for row in frame.to_dict(orient="records")
        ),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


def _escape_latex(text: str) -> str:
    for symbol in "&%$#_{}":
        text = text.replace(symbol, f"\\{symbol}")
    return text


_BEAT = 20.0

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
    """A line for every task when it begins, for every note, and whenever the last line is `_BEAT` seconds old."""

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
        if new or progress.clock() - max(self._last, progress.began) >= _BEAT:
            self._last = progress.clock()
            self._write(progress.line)


class _JsonLines(Nothing):
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
            seconds_by_name = {name: round(value, 1) for name, value in times.items() if value is not None}
            _print_json(
                {"progress": task.name, "done": task.done, "total": task.total, **of_arm, **part, **seconds_by_name}
            )


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
        spinner.update(text=Text(made.line, overflow="ellipsis", no_wrap=True))
        return Group(spinner, *([Text(made.note)] if made.note else []))

    def new_live() -> Live:
        return Live(get_renderable=drawn, console=screen, transient=True, refresh_per_second=5, redirect_stdout=beside)

    view = _Drawn(new_live)
    made = Progress(view)
    view.start()
    try:
        yield made
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


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value), file=sys.stderr, flush=True)
