"""The model behind every display of progress, with a clock that the test sets."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
import subprocess
import sys
import termios

import pytest

from ragbench.base import progress as steps
from ragbench.base.console import _BEAT as BEAT, Nothing, Pipe, in_terminal
from ragbench.base.progress import Progress, in_words


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_line_names_arm_step_rows_and_time_left(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    with steps.shown(progress), steps.arm(2, 3, "recommended"):
        for clock.now, done in ((0.0, 0), (0.5, 1), (30.5, 151), (50.5, 251)):
            progress("embedding", done, 1251)
    assert progress.line == "arm 2 of 3 recommended  embedding 251/1,251  3 min left"  # 5 rows a second


def test_time_left_ignores_rows_from_a_cache(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    for clock.now, done in ((0.0, 900), (1.0, 901), (11.0, 911)):
        progress("embedding", done, 1000)
    assert progress.seconds_left == 89


def test_time_left_follows_rate_of_last_minute(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    for clock.now, done in ((0.0, 0), (10.0, 500), (80.0, 510), (130.0, 520)):
        progress("embedding", done, 600)
    assert progress.seconds_left == 80 * 50 / 10


def test_progress_keeps_rate_of_arms_in_turn(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    with steps.shown(progress):
        for clock.now, done in ((0.0, 0), (2.0, 1), (4.0, 2)):
            for number, name in ((1, "a"), (2, "b")):
                with steps.arm(number, 2, name):
                    progress("running stages", done, 4)
    assert progress.line == "arm 2 of 2 b  running stages 2/4  4 s left"


def test_line_shows_part_beside_its_task(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    with steps.shown(progress):
        progress("running stages", 10, 12)
        lines = []
        for _ in steps.track("re-ranking", range(4)):
            clock.now += 2.0
            lines.append(progress.line)
    assert lines == [
        "running stages 10/12, re-ranking 0/4  2 s so far",
        "running stages 10/12, re-ranking 1/4  4 s so far",
        "running stages 10/12, re-ranking 2/4  4 s left",
        "running stages 10/12, re-ranking 3/4  2 s left",
    ]
    assert progress.part is None  # it is over
    assert len(progress.bars.tasks) == 1


def test_part_of_one_row_is_not_reported(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    with steps.shown(progress):
        steps.ticks("embedding", 1)(1)
    assert progress.part is None
    steps.ticks("embedding", 5)(1)  # nothing is shown: nothing happens


def test_pipe_prints_every_step_and_is_never_silent_long(clock: Clock) -> None:
    lines: list[str] = []
    view = Pipe(lines.append)
    progress = Progress(view, clock)
    progress("reading", 0, 10)
    for clock.now in range(1, 50):
        progress("reading", 5, 10)
    progress("embedding", 0, 10)
    for clock.now in range(50, 100):
        view.changed(progress, False)  # what the thread does while nothing is reported
    assert [line.split()[0] for line in lines] == [
        *("reading", "reading", "reading", "embedding", "embedding", "embedding")
    ]
    assert BEAT < 30


def test_terminal_draws_nothing_while_an_answer_is_printed() -> None:
    with in_terminal() as progress, steps.shown(progress):
        view = progress.view
        assert view.live.is_started
        with steps.hidden():
            assert not view.live.is_started
        assert view.live.is_started
    with steps.hidden():  # nothing is shown
        pass


RESULT = """
import sys, time
from ragbench.base import progress as steps
from ragbench.base.console import in_terminal
with in_terminal() as progress, steps.shown(progress):
    for done in range(1, 6):
        progress("timing the queries of all arms [side by side] and again under load", done, 9)
        progress.report_part("searching", 1, 4)
        time.sleep(0.1)
    with steps.hidden():
        print(*(f"line {number} of the result" for number in range(1, 7)), sep="\\n", flush=True)
    time.sleep(0.5)
print("report in report.html")
"""


@pytest.mark.parametrize("columns", [80, 120])
def test_terminal_erases_no_line_of_a_result(columns: int) -> None:
    screen = screen_of([sys.executable, "-c", RESULT], columns)
    assert screen == [*(f"line {number} of the result" for number in range(1, 7)), "report in report.html"]


def screen_of(command: list[str], columns: int) -> list[str]:
    """The lines that a terminal of that width shows when the command has ended."""
    main, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        written = b""
        with contextlib.suppress(OSError):  # the other side is closed
            while piece := os.read(main, 65_536):
                written += piece
        os.close(main)
        assert process.wait() == 0
    lines, row, column = [""], 0, 0
    for code, sign in re.findall(r"\x1b\[([\d;?]*[A-Za-z])|([^\x1b])", written.decode()):
        if code.endswith("A"):
            row = max(0, row - int(code[:-1] or 1))
        elif code == "2K":
            lines[row] = ""
        elif sign == "\r":
            column = 0
        elif sign == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif sign:
            lines[row] = lines[row].ljust(column)[:column] + sign + lines[row][column + 1 :]
            column += 1
        assert column <= columns
    return [line for line in lines if line.strip()]


def test_in_words_names_seconds_minutes_and_hours() -> None:
    assert [in_words(seconds) for seconds in (3.4, 89.0, 240.0, 7200.0)] == ["3 s", "89 s", "4 min", "2.0 h"]
