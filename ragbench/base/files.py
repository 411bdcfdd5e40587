"""Files and folders that are absent or complete, also after a kill or a power cut, and that show when they changed.

Everything is written under a temporary name, flushed to disk and then renamed."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import platform
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from ragbench.base.types import Damaged

_NAME_BYTES = 180  # leaves room for the rest of a draft's name below the usual limit of 255


def draft_of(path: Path) -> Path:
    """Return a unique temporary name next to `path`: a dot, its name, the process, this machine and random digits."""
    name = path.name.encode()[:_NAME_BYTES].decode(errors="ignore")
    return path.with_name(f".{name}.{os.getpid()}-{_machine()}{uuid.uuid4().hex[:6]}")


@cache
def _machine() -> str:
    """Return digits of the host and its boot, or of a container: only there a process id means something."""
    processes = Path("/proc/self/ns/pid")
    namespace = processes.readlink() if processes.exists() else ""
    return hashlib.sha256(f"{platform.node()} {namespace}".encode()).hexdigest()[:6]


def remove_abandoned(folder: Path, alone: bool = False) -> None:
    """Remove the drafts in a folder whose processes were killed on this machine, and the journals of databases.

    `alone`: only this process uses the folder, so all drafts in and below it are removed.
    """
    for path in folder.rglob(".*.*-????????????") if alone else folder.glob(f".*.*-{_machine()}??????*"):
        writer = path.name.rpartition(".")[2].partition("-")[0]
        if alone or (writer.isdigit() and not _is_running(int(writer))):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return process > 0


@cache
def _tidied(folder: Path) -> None:
    remove_abandoned(folder)


@contextmanager
def atomic_write(path: Path, durable: bool = True) -> Iterator[Path]:
    """A draft to write; it is renamed to `path` when the block succeeds, and removed when the block fails.

    A file that replaces another keeps its permissions. `durable` flushes to disk before renaming; without it the reader
    must be able to tell that a file is incomplete.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _tidied(path.parent.absolute())
    draft = draft_of(path)
    try:
        yield draft
        if path.exists():
            draft.chmod(path.stat().st_mode)
        if durable:
            flush(draft)
        draft.replace(path)
        if durable:
            flush(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process and thread at a time read, change and replace a file. A thread may lock a file twice."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock"), is_singleton=True):
        yield


def write_text(path: Path, text: str, durable: bool = True) -> None:
    """Write a UTF-8 file that is either absent or complete."""
    with atomic_write(path, durable) as draft:
        draft.write_text(text, encoding="utf-8", newline="")


def publish_folder(draft: Path, folder: Path) -> None:
    """Flush a complete folder to disk and rename it to `folder`, which must not exist."""
    for path in [*draft.rglob("*"), draft]:
        flush(path)
    draft.rename(folder)
    flush(folder.parent)


def flush(path: Path) -> None:
    """Wait until a file or the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def resolved(path: Path) -> Path:
    """A path without links and dots. Raises OSError for a loop of links."""
    try:
        return path.resolve()
    except RuntimeError:  # what Python 3.11 raises for a loop
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None


def _opened(path: Path) -> io.BufferedReader:
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.open("rb")


def digest(path: Path) -> str:
    """A digest of a file's content, 32 hexadecimal digits. Raises OSError for a pipe or device, which may never end."""
    with _opened(path) as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, 64 hexadecimal digits, as others compute it. Raises OSError as `digest`."""
    with _opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_digests(folder: Path, expected: Mapping[str, str]) -> None:
    """Raise Damaged, with its name, for a file below `folder` that is missing or does not have its digest."""
    for name, expected_digest in expected.items():
        path = folder / name
        if not path.is_file():
            raise Damaged(f"{name} is missing")
        if digest(path) != expected_digest:
            raise Damaged(f"{name} has changed since it was written")
