"""Processes end when they are told to, and with the one that started them."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from ragbench.base import processes

CHILD = "import os; from ragbench.base.processes import end_with; end_with(os.getppid()); input()"
ASKED = "from ragbench.base.processes import end_on_signals; end_on_signals(); input()"
BY_VARIABLE = f"""
import os, subprocess, sys
environment = {{**os.environ, "{processes.PARENT}": str(os.getpid())}}
child = subprocess.Popen([sys.executable, "-c", {ASKED!r}], stdin=subprocess.PIPE, env=environment)
print(child.pid, flush=True)
sys.stdin.read()
"""
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("end", [subprocess.Popen.kill, subprocess.Popen.terminate])
@pytest.mark.parametrize("script", [PARENT, BY_VARIABLE], ids=["worker", "command"])
def test_a_process_ends_with_the_one_that_started_it(end, script: str) -> None:
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        end(parent)
        parent.wait(30)
    child.wait(30)
    assert not child.is_running()


def test_sigterm_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    monkeypatch.setattr(processes.signal, "signal", lambda number, handler: said.append((number, handler)))
    processes.end_on_signals()
    # Where the process was started with Ctrl-C ignored, that signal is restored too.
    ((number, handler),) = [each for each in said if each[0] == processes.signal.SIGTERM]
    assert number == processes.signal.SIGTERM
    with pytest.raises(KeyboardInterrupt):
        handler(number, None)
