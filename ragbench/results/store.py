"""The folders of results as a store: locks for writers, finished experiments, and checks against damage.

    <root>/runs/<time>-<command>-<name>-<digest>/
        plan.json               what is measured
        .lock, running.json     held while a process works here, and which one that is
        arms/<arm>/done.json    written last of an arm's files; holds their digests
        experiment.json         the record, written last; holds the digests of all other files

The three JSON files are sealed (`ragbench.base.files`). Without its last file an arm, or an experiment, is not
finished; with a file that has changed since, it is damaged, and none of its values is used.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import platform
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import files, processes
from ragbench.base.types import Damaged, ResultsError, short_path
from ragbench.boundary.json import read_checksummed, read_json_file, write_checksummed

if TYPE_CHECKING:
    import pandas as pd
    from filelock import FileLock

_LOG = logging.getLogger(__name__)

FORMAT = 2

RECORD, PLAN, DONE = "experiment.json", "plan.json", "done.json"

REPORT = "report.html"
"""The file that an extra adds to the folder of a finished run."""

_ARMS, _LOCK, _RUNNING = "arms", ".lock", "running.json"

_SAFE = re.compile(r"[a-z0-9_][a-z0-9._=+,-]{0,47}")

_READABLE = 40


def readable(name: str) -> str:
    """The part of a folder's name that reminds of what it holds: at most 40 characters that every system takes."""
    return re.sub(r"[^A-Za-z0-9._=+,-]+", "_", name)[:_READABLE].strip(".") or "_"


def arm_folder(name: str) -> str:
    """The folder of an arm: its name where that can be one everywhere, else a readable part and a digest.

    Names that differ give folders that differ, also where a file system knows no upper case.
    """
    if _SAFE.fullmatch(name):
        return name
    return f"{readable(name)}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def arm_path(folder: Path, name: str) -> Path:
    """The folder of an arm's files."""
    return folder / _ARMS / arm_folder(name)


def run_folder(path: Path) -> Path:
    """The folder of the run that `path` is, or that has `path` as the folder of an arm."""
    return path.parent.parent if path.parent.name == _ARMS else path


@dataclass(frozen=True)
class RunFolder:
    """The folder of an experiment that this process writes; no other process does while it is open."""

    path: Path

    def arm(self, name: str) -> RunFolder:
        """The folder of an arm."""
        return RunFolder(arm_path(self.path, name))

    def text(self, name: str, text: str) -> None:
        """Write a text file. It is on the disk when the arm, or the experiment, is finished."""
        with errors_as_results_error(self.path):
            files.write_text(self.path / name, text, durable=False)

    def table(self, name: str, frame: pd.DataFrame) -> None:
        """Write a table as Parquet, in the same way."""
        with errors_as_results_error(self.path), files.atomic_write(self.path / name, durable=False) as draft:
            frame.to_parquet(draft, index=False)

    def write(self, contents: Mapping[str, str | pd.DataFrame]) -> None:
        """Write texts and tables by the names of their files."""
        for name, content in contents.items():
            if isinstance(content, str):
                self.text(name, content)
            else:
                self.table(name, content)

    def copy(self, source: Path, arms: Sequence[str], names: Sequence[str], without: str) -> None:
        """Copy files and arms of a finished experiment, all of an arm's files but one that its seal does not hold."""
        with errors_as_results_error(self.path):
            for name in names:
                shutil.copyfile(source / name, self.path / name)
            for arm in arms:
                shutil.copytree(
                    arm_path(source, arm),
                    arm_path(self.path, arm),
                    dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns(without),
                )

    def finish_arm(self, key: str) -> None:
        """Flush all files of this arm to the disk and seal them; `key` identifies what was measured."""
        with errors_as_results_error(self.path):
            write_checksummed(self.path / DONE, {"key": key, "files": _flush_and_digest(self.path, _files(self.path))})

    def finish(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Flush all files of the experiment to the disk and seal them; returns the record as it is read."""
        with errors_as_results_error(self.path):
            sealed = {
                f"{_ARMS}/{arm_folder.name}/{name}"
                for arm_folder in (arm_path(self.path, arm) for arm in record["arms"])
                for name in _recorded_files(arm_folder)
            }
            unsealed = [name for name in _files(self.path) if name not in sealed]
            value = {**record, "format": FORMAT, "files": _flush_and_digest(self.path, unsealed)}
            return write_checksummed(self.path / RECORD, value)


def yaml_text(value: Mapping[str, Any], sort_keys: bool = False) -> str:
    """Plain values as YAML."""
    import yaml

    # The C dumper writes the same three times as fast.
    text: str = yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=sort_keys)
    return text


@contextmanager
def writing(
    root: Path, command: str, label: str, plan: str, arms: Sequence[str], folder: Path | None
) -> Iterator[RunFolder]:
    """The folder for an experiment: `folder` when given, that of the same one when it was stopped, else a new one.

    `plan` is a digest of what is measured. Raises ResultsError when it cannot be written.
    """
    with errors_as_results_error(folder or root):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            path, lock = folder, _lock(folder)
            if (folder / RECORD).exists():
                raise ResultsError(f"{folder} holds a finished experiment: name another folder")
        else:
            stopped = _stopped_folder(root, plan)
            if stopped is not None:
                _LOG.info(f"continuing the stopped experiment in {stopped[0]}")
            path, lock = stopped or _new(root, command, label, plan)
    if lock is None:
        raise ResultsError(f"another process ({_who(path)}) writes to {path}: wait for it, or name another folder")
    try:
        with errors_as_results_error(path):
            process = {"pid": os.getpid(), "host": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
            files.write_text(path / _RUNNING, json.dumps(process), durable=False)
            files.remove_abandoned(path, alone=True)
            write_checksummed(
                path / PLAN,
                {
                    "format": FORMAT,
                    "plan": plan,
                    "command": command,
                    "arms": list(arms),
                    "typed": list(processes.TYPED.get()),
                    "typed_in": str(Path.cwd()),
                },
            )
        yield RunFolder(path)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {_read_stopped(path).sentence}") from None
    finally:
        (path / _RUNNING).unlink(missing_ok=True)
        lock.release()


def _unfinished(root: Path) -> list[Path]:
    """The folders below `root` that have a plan and no record, the oldest first."""
    plans = sorted(root.glob(f"runs/*/{PLAN}"))
    return [path.parent for path in plans if not (path.parent / RECORD).exists()]


@dataclass(frozen=True)
class _Stopped:
    """A run that was stopped before its end: its arms, those that are finished, and the command that goes on with it.

    `working` names the process that still writes to it, "" when none does; `command` is empty for a run of a script.
    """

    folder: Path
    arms: tuple[str, ...]
    finished: tuple[str, ...]
    command: str
    typed_in: str
    working: str = ""

    @property
    def go_on(self) -> str:
        """What to type, with the folder where that is another one."""
        if not self.command:
            return "run the same experiment again"
        return self.command if self.typed_in == str(Path.cwd()) else f"cd {shlex.quote(self.typed_in)}; {self.command}"

    @property
    def sentence(self) -> str:
        """What is kept, and how it goes on."""
        named = f" ({', '.join(self.finished)})" if self.finished else ""
        progress = f"{len(self.finished)} of {len(self.arms)} arms finished{named}"
        return f"{progress} and kept in {short_path(self.folder)}; to continue: {self.go_on}"


def stopped_runs(root: Path) -> list[_Stopped]:
    """The runs below `root` that have no record, the newest first, also those that another process is writing."""
    stopped = []
    for folder in reversed(_unfinished(root)):
        try:
            lock = _lock(folder)
            if lock is not None:
                lock.release()
            stopped.append(_read_stopped(folder, "" if lock is not None else _who(folder)))
        except (Damaged, FileNotFoundError):
            continue  # it cannot be continued either: the next run names it
    return stopped


def _read_stopped(folder: Path, working: str = "") -> _Stopped:
    plan = read_checksummed(folder / PLAN)
    arms = tuple(map(str, plan["arms"]))
    return _Stopped(
        folder,
        arms,
        tuple(arm for arm in arms if (arm_path(folder, arm) / DONE).exists()),
        shlex.join(plan.get("typed", ())),
        str(plan.get("typed_in", "")),
        working,
    )


def finished(folder: Path, name: str, key: str) -> bool:
    """Whether an arm of a stopped experiment is finished; one that is damaged is not, and is named."""
    arm_folder = arm_path(folder, name)
    try:
        seal = read_checksummed(arm_folder / DONE)
        files.check_digests(arm_folder, seal["files"])
    except FileNotFoundError:
        return False
    except Damaged as damage:
        _LOG.warning(f"arm '{name}' in {folder} is damaged ({damage}) and is run again")
        return False
    return bool(seal["key"] == key)


def read(folder: Path) -> dict[str, Any]:
    """The record of a finished experiment, after all its files were compared with their digests.

    Raises ResultsError where there is none, or where a file is missing or has changed.
    """
    try:
        record = read_checksummed(folder / RECORD)
        files.check_digests(folder, record["files"])
        for name in record["arms"]:
            files.check_digests(arm_path(folder, name), _recorded_files(arm_path(folder, name)))
    except FileNotFoundError:
        raise ResultsError(
            f"{folder} holds no results ({RECORD} is missing): name the folder of a finished run"
        ) from None
    except Damaged as damage:
        raise ResultsError(
            f"the results in {folder} are damaged ({damage}): restore the folder from a copy, or run again"
        ) from None
    return record


def finished_runs(root: Path) -> list[Path]:
    """The results folders below `root` that have a record, the newest first."""
    folders = sorted(root.glob(f"runs/*/{RECORD}"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [record.parent for record in folders]


def latest(root: Path) -> Path:
    """The newest finished results folder below `root`; damaged ones are named and skipped."""
    damaged = []
    for folder in finished_runs(root):
        try:
            read_checksummed(folder / RECORD)
        except Damaged:
            damaged.append(folder)
            continue
        _name_damaged(damaged)
        return folder
    _name_damaged(damaged)
    for run in stopped_runs(root):
        raise ResultsError(f"no finished results below {root / 'runs'}; {run.sentence}")
    raise ResultsError(f"no results below {root / 'runs'}: run an experiment first")


def _stopped_folder(root: Path, plan: str) -> tuple[Path, FileLock] | None:
    """The folder of a stopped experiment of this plan, and its lock."""
    damaged = []
    try:
        for folder in _unfinished(root):
            try:
                if read_checksummed(folder / PLAN)["plan"] != plan:
                    continue
            except (Damaged, FileNotFoundError):
                damaged.append(folder)
                continue
            lock = _lock(folder)
            if lock is None:
                _LOG.info(
                    f"the same experiment is running ({_who(folder)}) in {folder}; this one gets a folder of its own"
                )
            elif (folder / RECORD).exists():  # it came to its end just now
                lock.release()
            else:
                return folder, lock
    finally:
        _name_damaged(damaged)
    return None


def _new(root: Path, command: str, label: str, plan: str) -> tuple[Path, FileLock | None]:
    """A folder that did not exist, locked."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{command}-{readable(label)}-{plan[:8]}"
    (root / "runs").mkdir(parents=True, exist_ok=True)
    _remove_begun(root / "runs")
    number = 1
    while True:
        folder = root / "runs" / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
            continue
        return folder, _lock(folder)


def _remove_begun(runs: Path) -> None:
    """Remove the folders of processes that were killed before they had written their plan."""
    for folder in runs.iterdir():
        if not folder.is_dir() or (folder / PLAN).exists() or (folder / RECORD).exists():
            continue
        begun = {path.name for path in folder.iterdir()} - {_LOCK}  # written after the folder was locked
        files.remove_abandoned(folder)
        remaining = {path.name for path in folder.iterdir()} - {_LOCK, _RUNNING}
        if begun and not remaining and (lock := _lock(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            lock.release()


def _lock(folder: Path) -> FileLock | None:
    """The lock of a folder, held until it is released or the process ends; None while another holds it."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / _LOCK, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock


def _who(folder: Path) -> str:
    """The process that writes to a folder."""
    try:
        process = read_json_file(folder / _RUNNING)
        return f"process {process['pid']} on {process['host']} since {process['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "which one is not known"


def _files(folder: Path) -> list[str]:
    """The files below a folder that count, by name: neither drafts nor locks, nor those that seal them."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in names if not name.rpartition("/")[2].startswith(".") and name not in _OUTSIDE)


_OUTSIDE = frozenset({RECORD, PLAN, _RUNNING, DONE})


def _flush_and_digest(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Flush files to the disk; their digests."""
    for name in names:
        files.flush(folder / name)
    for directory in sorted({(folder / name).parent for name in names}):
        files.flush(directory)
    return {name: files.digest(folder / name) for name in names}


def _recorded_files(folder: Path) -> dict[str, str]:
    """The digests of an arm's files. Raises Damaged."""
    try:
        return dict(read_checksummed(folder / DONE)["files"])
    except FileNotFoundError:
        raise Damaged(f"{_ARMS}/{folder.name}/{DONE} is missing") from None


def _name_damaged(folders: Sequence[Path]) -> None:
    if folders:
        _LOG.warning(f"skipped results that cannot be read: {', '.join(map(str, folders))}")


@contextmanager
def errors_as_results_error(path: Path) -> Iterator[None]:
    """Raise ResultsError, in one sentence, for what cannot be written or has changed while it was written."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "free space there" if full else "check its permissions"
        reason = error.strerror or type(error).__name__
        raise ResultsError(
            f"results cannot be written to {path} ({reason}): {remedy}, or name another folder with paths.results"
        ) from None
    except Damaged as damage:
        raise ResultsError(f"results in {path} were changed while they were written ({damage}): run again") from None
