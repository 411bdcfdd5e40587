"""Project files of somebody else: what they would send or start is asked about once, as direnv does.

A file is trusted by its path and the digest of its content; a changed file is asked about again. The list is a sealed
file of this user.
"""

from __future__ import annotations

from pathlib import Path

from ragbench.base import files, locations
from ragbench.base.errors import ConfigError
from ragbench.boundary.sealed import read_sealed, write_sealed

NAME = "trusted.json"


def is_trusted(file: Path) -> bool:
    """Whether this content of a file was trusted."""
    try:
        return _read().get(str(files.resolved(file))) == files.sha256(file)
    except OSError:
        return False


def trust(file: Path) -> None:
    """Trust a file as it is now. ConfigError when that cannot be kept."""
    _change(file, files.sha256(file))


def trust_own(file: Path) -> bool:
    """Trust what a command of this user has written; False where that cannot be kept, and is asked about later."""
    try:
        trust(file)
    except ConfigError:
        return False
    return True


def forget(file: Path) -> None:
    """Trust a file no longer."""
    _change(file, None)


def _change(file: Path, digest: str | None) -> None:
    from filelock import FileLock

    path = locations.state() / NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")):
            known = _read()
            known.pop(name := str(files.resolved(file)), None)
            write_sealed(path, {"files": known if digest is None else {**known, name: digest}})
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written ({files.why_unreadable(error)}): set XDG_STATE_HOME to a folder that can"
        ) from None


def _read() -> dict[str, str]:
    path = locations.state() / NAME
    try:
        return dict(read_sealed(path)["files"])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (files.Damaged, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}, the list of trusted projects, cannot be used ({files.why_unreadable(error)}): delete it"
        ) from None
