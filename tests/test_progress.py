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
from ragbench.base.console import _BEAT as BEAT
from ragbench.base.console import Nothing, Pipe, in_terminal
from ragbench.base.progress import Progress, Step, in_words


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_line_names_arm_step_rows_and_time_left(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    with steps.shown(progress), steps.arm(2, 3, "recommended"):
        progress("embedding", 0, 2044)
        clock.now = 100.0
        progress("embedding", 611, 2044)
    assert progress.line == "arm 2 of 3 recommended  embedding 611/2,044  4 min left"  # 100 / 611 * 1433 s = 235 s


def test_rows_from_a_cache_do_not_count_for_the_rate(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    progress("embedding", 900, 1000)
    assert progress.seconds_left is None
    clock.now = 10.0
    progress("embedding", 910, 1000)
    assert progress.seconds_left == pytest.approx(90.0)


def test_the_rate_is_that_of_the_last_minute(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    for clock.now, done in ((0.0, 0), (10.0, 500), (80.0, 510), (150.0, 520)):
        progress("embedding", done, 600)
    assert progress.seconds_left == pytest.approx(80 * 70 / 10)


def test_a_part_of_a_task_stands_beside_it(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    with steps.shown(progress):
        progress("running stages", 10, 12)
        seen = []
        for _ in steps.track("re-ranking", range(3)):
            clock.now += 2.0
            seen.append(progress.line)
    assert seen == [
        "running stages 10/12, re-ranking 0/3  2 s so far",
        "running stages 10/12, re-ranking 1/3  2 s left",
        "running stages 10/12, re-ranking 2/3",
    ]
    assert progress.part is None  # it is over


def test_one_row_alone_is_not_reported(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    with steps.shown(progress):
        steps.ticks("embedding", 1)(1)
    assert progress.part is None
    steps.ticks("embedding", 5)(1)  # nothing is shown: nothing happens


def test_the_time_of_all_follows_the_pace_so_far(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    progress.expect([Step("reading", "", 2.0), Step("embedding", "a", 10.0), Step("embedding", "b", 30.0)])
    assert progress.all_seconds_left == 42.0
    progress("reading", 0, 2)
    clock.now = 4.0
    progress("reading", 2, 2)  # twice as long as expected
    assert progress.all_seconds_left == 80.0
    with steps.shown(progress), steps.arm(1, 2, "a"):
        progress("embedding", 0, 100)
        clock.now = 9.0
        progress("embedding", 50, 100)
    assert progress.all_seconds_left == pytest.approx(5 + 60)
    assert progress.line == "arm 1 of 2 a  embedding 50/100  5 s left  about 65 s in total"


def test_stages_of_other_arms_do_not_count_as_slow_as_those_of_the_last(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    progress.expect([Step("running stages", arm, 100.0, even=False) for arm in "ab"])
    with steps.shown(progress), steps.arm(1, 2, "a"):
        progress("running stages", 1, 20)
        clock.now = 200.0  # re-ranking, twice as long as expected; the rows are those of both arms
        assert progress.all_seconds_left == pytest.approx(0 + 100)
        progress("running stages", 9, 20)
    with steps.shown(progress), steps.arm(2, 2, "b"):
        progress("running stages", 10, 20)
        assert progress.all_seconds_left == pytest.approx(200)
        clock.now = 260.0
        assert progress.all_seconds_left == pytest.approx(140)


def test_a_row_that_takes_long_is_not_done_in_no_time(clock: Clock) -> None:
    progress = Progress(Nothing(), clock)
    for clock.now, done in ((0.0, 0), (10.0, 1)):
        progress("embedding", done, 4)
    clock.now = 500.0
    assert progress.seconds_left == pytest.approx(20.0)  # the row that is worked on may end any moment


def test_a_pipe_has_a_line_for_every_step_and_never_a_long_silence(clock: Clock) -> None:
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


def test_nothing_is_drawn_while_an_answer_is_printed() -> None:
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
    progress("timing", 1, 9)
    time.sleep(0.5)
    with steps.hidden():
        print(*(f"line {number} of the result" for number in range(1, 7)), sep="\\n", flush=True)
    time.sleep(0.5)
print("report in report.html")
"""


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_of_a_result_is_erased_when_the_progress_goes_on(columns: int) -> None:
    shown = screen_of([sys.executable, "-c", RESULT], columns)
    assert shown == [*(f"line {number} of the result" for number in range(1, 7)), "report in report.html"]


def screen_of(command: list[str], columns: int) -> list[str]:
    """The lines that a terminal of that width shows when the command has ended."""
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        written = b""
        with contextlib.suppress(OSError):  # the other side is closed
            while piece := os.read(ours, 65_536):
                written += piece
        os.close(ours)
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


def test_times_in_words() -> None:
    assert [in_words(each) for each in (3.4, 89.0, 240.0, 7200.0)] == ["3 s", "89 s", "4 min", "2.0 h"]
