"""Grading a pool in a terminal with single keys: 0-3 grade, s skips, u undoes, q quits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ragbench.extras.collect.judge import ACTS, GRADES, JudgingSession

if TYPE_CHECKING:
    from rich.console import Console

_QUIT = "q"
_END = "\x04"
_INTERRUPT = "\x03"
_ESCAPE = b"\x1b"


def judge_in_terminal(
    path: Path, console: Console | None = None, read: Callable[[], str] | None = None
) -> JudgingSession:
    """Grade the pool at `path` until it is done or the judge quits; every key is saved before the next pair is shown.

    `read` gives one key at a time, `q` or the empty string to end; the default reads the keyboard, or lines when
    standard input is not a terminal.
    """
    from rich.console import Console

    console = console or Console()
    read = read or keys(sys.stdin)
    session = JudgingSession(path)
    say = ""
    while session.item is not None:
        _show(session, console, say)
        try:
            key = read().lower()
        except KeyboardInterrupt:
            key = _QUIT
        if key in ("", _QUIT, _END, _INTERRUPT):
            break
        unknown = f"'{key}' is not a key here" if key.isprintable() else ""
        say = session.act(key) if key in ACTS else unknown
    console.print(f"{session.state}; saved in {path}", markup=False)
    return session


def keys(stream: TextIO) -> Callable[[], str]:
    """A function that waits for a key: a key press of a terminal, else the first letter of a line; `""` at the end."""
    if stream.isatty():
        try:
            import termios
            import tty
        except ImportError:  # Windows has neither

            def press() -> str:
                import msvcrt

                return str(msvcrt.getwch())  # type: ignore[attr-defined]  # exists on Windows only

            return press

        def key() -> str:
            descriptor = stream.fileno()
            settings_before = termios.tcgetattr(descriptor)
            try:
                tty.setcbreak(descriptor, termios.TCSANOW)  # the default would throw away keys pressed meanwhile
                pressed = os.read(descriptor, 1)
                if pressed == _ESCAPE:
                    # Delete sends ESC [ 3 ~, and its 3 is not a grade.
                    termios.tcflush(descriptor, termios.TCIFLUSH)
                return pressed.decode("utf-8", "replace")
            finally:
                termios.tcsetattr(descriptor, termios.TCSADRAIN, settings_before)

        return key

    lines: Iterator[str] = (line.strip() for line in stream)
    return lambda: next((line[0] for line in lines if line), "")


def _show(session: JudgingSession, console: Console, say: str) -> None:
    from rich.panel import Panel
    from rich.text import Text

    item = session.item
    if item is None:
        return
    console.clear()
    console.print(Text(f"{session.n_graded} of {len(session)} graded   {say}", style="dim"))
    query = Text(_printable(item.query), style="bold")
    if item.need:
        query.append(f"\n{_printable(item.need)}", style="not bold")
    console.print(Panel(query, title=_printable(item.qid), title_align="left"))
    title = Text(f"{_printable(item.location)}   {_printable(item.heading)}")
    console.print(Panel(Text(_printable(item.text)), title=title, title_align="left"))
    if item.note:
        console.print(Text(f"note: {_printable(item.note)}"))
    legend = "   ".join(f"{grade} {meaning}" for grade, meaning in GRADES.items())
    console.print(Text(f"{legend}\ns skip   u undo   q quit", style="dim"))


def _printable(text: str) -> str:
    """Without control characters: a document must not be able to steer the terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)
