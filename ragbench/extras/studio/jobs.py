"""Experiments started from the studio: one at a time, and one that waits.

A job is the command that the page shows, in another process, which reports its progress in lines of JSON
(`ragbench.base.console.PROGRESS`). It writes the same files as in a terminal: when the same command is started again, a
cancelled job continues.
"""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ragbench.base import console, processes
from ragbench.base.errors import ConfigError
from ragbench.boundary.json import read_json

COMMANDS = ("ablate", "run", "tune")
State = Literal["waiting", "running", "done", "failed", "cancelled"]

_LINES = 200
_KEPT = 20
_PATIENCE = 20.0
"""Seconds that a job may take to end when it is asked to; then it is killed."""


@dataclass
class Task:
    """A step of a job, as the command reports it: rows done, all rows, and the seconds left where they are known."""

    done: int
    total: int
    seconds_left: float | None = None


@dataclass
class Job:
    """One command; `run` is the name of its results folder when it wrote one."""

    command: tuple[str, ...]
    id: str = field(default_factory=lambda: secrets.token_hex(6))
    state: State = "waiting"
    began: float = 0.0
    ended: float = 0.0
    tasks: dict[str, Task] = field(default_factory=dict)
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LINES))
    run: str = ""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def command_line(self) -> str:
        """The command as it is typed."""
        return shlex.join(self.command)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state not in ("waiting", "running") and (self.process is None or self.ended > 0)

    def as_values(self) -> dict[str, Any]:
        """The state of the job for a page, as plain values."""
        tasks = [{"name": name, **vars(task)} for name, task in list(self.tasks.items())]
        spent = (self.ended or time.monotonic()) - self.began if self.began else 0.0
        return {
            "id": self.id,
            "state": self.state,
            "tasks": tasks,
            "seconds": round(spent),
            "lines": list(self.lines),
            "ended": self.ended > 0,
        }


@dataclass
class Jobs:
    """The queue of jobs. `root` is the results folder, in which finished runs are looked up."""

    root: Path
    _jobs: dict[str, Job] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def all(self) -> list[Job]:
        """All jobs of this session, newest first."""
        return list(reversed(self._jobs.values()))

    def find(self, job: str) -> Job:
        """A job. Raises ConfigError."""
        if job not in self._jobs:
            raise ConfigError("no such job in this session")
        return self._jobs[job]

    def start(self, overrides: Sequence[str]) -> Job:
        """Start `ragbench` with these words, or queue it while another job runs. ConfigError when one waits already."""
        if not overrides or overrides[0] not in COMMANDS:
            raise ConfigError(f"only {', '.join(COMMANDS)} are started here")
        with self._lock:
            if any(job.state == "waiting" for job in self._jobs.values()):
                raise ConfigError("one experiment runs and one waits: cancel one of them, or wait")
            job = Job(("ragbench", *overrides))
            self._jobs[job.id] = job
            for old in [job.id for job in self._jobs.values() if job.over][:-_KEPT]:
                del self._jobs[old]
            self._next()
        return job

    def cancel(self, job: str) -> None:
        """Ask a job to end; what it has finished is kept."""
        running = self.find(job)
        with self._lock:
            if running.state == "waiting":
                running.state, running.ended = "cancelled", time.monotonic()
            elif running.state == "running" and running.process is not None:
                running.state = "cancelled"
                running.process.send_signal(signal.SIGTERM)
                threading.Thread(target=_insist, args=(running.process,), daemon=True).start()

    def close(self) -> None:
        """End all jobs, and wait until they have ended."""
        for job in self.all():
            self.cancel(job.id)
        for job in self.all():
            if job.process is not None:
                _insist(job.process)

    def _next(self) -> None:
        running = any(job.process is not None and job.process.poll() is None for job in self._jobs.values())
        waiting = next((job for job in self._jobs.values() if job.state == "waiting"), None)
        if running or waiting is None:
            return
        environment = {**os.environ, console.PROGRESS: "lines", processes.PARENT: str(os.getpid())}
        answer = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 # closed when the job has ended
        waiting.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ragbench", *waiting.command[1:], "--json"],
            stdin=subprocess.DEVNULL,
            stdout=answer,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
            start_new_session=True,  # Ctrl-C in the studio's terminal ends it once, by `close`
        )
        waiting.state, waiting.began = "running", time.monotonic()
        threading.Thread(target=self._follow, args=(waiting, waiting.process, answer), daemon=True).start()

    def _follow(self, job: Job, process: subprocess.Popen[str], answer: Any) -> None:
        """Read the output of a job until it ends, then start the next."""
        with answer:
            for line in process.stderr or ():
                _take_line(job, line.rstrip("\n"))
            code = process.wait()
            if process.stderr is not None:
                process.stderr.close()
            answer.seek(0)
            folder = _folder(answer.read())
        with self._lock:
            job.ended = time.monotonic()
            job.run = folder.name if folder is not None and folder.parent == self.root / "runs" else ""
            if job.state == "running":
                job.state = "done" if code == 0 else "failed"
            self._next()


def _take_line(job: Job, line: str) -> None:
    """Add a line of the output to the job: a step with the name of its arm, or a message."""
    try:
        value = read_json(line, own=True) if line.startswith("{") else {}
        of_arm = f"arm {value['number']} of {value['of']} {value['arm']}: " if "arm" in value else ""
        name, task = f"{of_arm}{value['progress']}", Task(int(value["done"]), int(value["total"]), value.get("left"))
    except (ValueError, KeyError, TypeError):
        if line.strip():
            job.lines.append(line)
        return
    job.tasks[name] = task


def _folder(answer: str) -> Path | None:
    """The results folder that a command named in its JSON."""
    try:
        value = read_json(answer, own=True)
    except ValueError:
        return None
    return Path(value["folder"]) if isinstance(value, Mapping) and isinstance(value.get("folder"), str) else None


def _insist(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
