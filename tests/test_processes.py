"""Processes end when they are told to, and with the one that started them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from ragbench.base import processes
from ragbench.base.types import RagbenchError
from ragbench.experiment import coldstart
from ragbench.extras.remote.live import client
from tests.naming import naming

CHILD = "import os; from ragbench.base.processes import exit_with_parent; exit_with_parent(os.getppid()); input()"
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("end", [subprocess.Popen.kill, subprocess.Popen.terminate])
def test_process_ends_with_the_one_that_started_it(end) -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        end(parent)
        parent.wait(30)
    child.wait(30)
    assert not child.is_running()


def test_sigterm_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = []
    monkeypatch.setattr(processes.signal, "signal", lambda number, handler: handlers.append((number, handler)))
    processes.install_signal_handlers()
    # Where the process was started with Ctrl-C ignored, that signal is restored too.
    ((number, handler),) = [entry for entry in handlers if entry[0] == processes.signal.SIGTERM]
    assert number == processes.signal.SIGTERM
    with pytest.raises(KeyboardInterrupt):
        handler(number, None)


POISON = "from pathlib import Path\nPath('EXECUTED').touch()\nraise ImportError('poisoned')\n"


def test_child_process_imports_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("random", "numpy", "argparse"):
        (tmp_path / f"{name}.py").write_text(POISON)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RagbenchError, check=naming("KeyError")):  # no settings
        coldstart.measure({}, "text", SimpleNamespace(collection="", documents=()))
    assert not (tmp_path / "EXECUTED").exists()


def test_user_program_imports_from_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*processes.SAFE_PATH)
    ask = client.asking_program(
        [sys.executable, "-c", "import json, sys; print(json.dumps([sys.flags.safe_path]))"], 30.0
    )
    assert ask("query", 1) == [False]


GUARD = """
import sys

def audit(event, arguments):
    if event in ("socket.getaddrinfo", "socket.connect", "socket.sendto"):
        open("SENT", "a").write(f"{event} {arguments}\\n")

sys.addaudithook(audit)
"""


@pytest.mark.slow
def test_command_sends_nothing_and_leaves_home_unchanged(tmp_path: Path, vault_folder: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(GUARD)
    (tmp_path / "tmp").mkdir()
    environment = {name: value for name, value in os.environ.items() if "TELEMETRY" not in name}
    environment |= {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(tmp_path)}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "home" / ".cache")
    asked = ["data=vault", f"data.corpus={vault_folder}", f"paths.results={tmp_path / 'results'}"]
    run = [sys.executable, "-m", "ragbench", "search", "how do lamps know when the sun sets", *asked]
    done = subprocess.run(run, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    written = [str(path) for path in [*tmp_path.rglob("home/**/*"), *tmp_path.rglob("tmp/**/*")] if path.is_file()]
    assert written == []
    assert not (tmp_path / "SENT").exists()
