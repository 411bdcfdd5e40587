from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from ragbench.extras.collect.commands.judge import judge_in_terminal, keys
from ragbench.extras.collect.pool import COLUMNS, read_pool, to_csv

WITHOUT_PATH = [name for name in COLUMNS if name != "path"]  # a pool of an earlier version


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = [
        (f"q{n}", "why [bold] not", "the \x1b]0;need\x07", f"a#{n}", "Top > Part", "text \x1b[2J [red]", "", "")
        for n in range(4)
    ]
    path = tmp_path / "pool.csv"
    path.write_text(to_csv(WITHOUT_PATH, rows))
    return path


def judge(path: Path, pressed: str) -> str:
    out = io.StringIO()
    waiting = iter(pressed)
    judge_in_terminal(path, Console(file=out, width=100, force_terminal=True, color_system=None), lambda: next(waiting))
    return out.getvalue()


def grades(path: Path) -> list[str]:
    return [row["grade"] for row in read_pool(path).rows]


def test_terminal_keys_grade_skip_undo_and_quit(path: Path) -> None:
    shown = judge(path, "3x1u0Sq")
    assert grades(path) == ["3", "0", "s", ""]
    assert "2 of 4 graded, 1 skipped; saved in" in shown
    assert "'x' is not a key here" in shown and "taken back" in shown and "skipped" in shown


def test_terminal_ends_when_all_is_graded(path: Path) -> None:
    judge(path, "0123")
    assert grades(path) == ["0", "1", "2", "3"]
    assert "4 of 4 graded" in judge(path, "")


def test_terminal_shows_control_characters_and_markup_as_text(path: Path) -> None:
    shown = judge(path, "q")
    assert "why [bold] not" in shown and "[red]" in shown
    assert "\x1b]0;" not in shown and shown.count("\x1b[2J") == 1  # one clearing of the screen, ours


def test_terminal_interrupt_saves_everything(path: Path) -> None:
    def read() -> Iterator[str]:
        yield "2"
        raise KeyboardInterrupt

    waiting = read()
    session = judge_in_terminal(path, Console(file=io.StringIO()), lambda: next(waiting))
    assert session.n_graded == 1 and grades(path) == ["2", "", "", ""]


def test_terminal_reads_lines_of_a_pipe() -> None:
    read = keys(io.StringIO("3\n\n skip\n"))
    assert [read(), read(), read(), read()] == ["3", "s", "", ""]


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")
def test_terminal_reads_single_keys() -> None:
    import termios

    main, terminal = os.openpty()
    with os.fdopen(terminal, "r+b", buffering=0) as raw:
        stream = io.TextIOWrapper(raw)
        before = termios.tcgetattr(terminal)
        read = keys(stream)
        os.write(main, b"2s")
        assert read() + read() == "2s"
        # Delete sends an escape sequence with a 3 in it.
        os.write(main, b"\x1b[3~")
        assert read() == "\x1b"
        os.write(main, b"1")
        assert read() == "1"
        assert termios.tcgetattr(terminal) == before
        stream.detach()
    os.close(main)
