"""Folders: the configuration and the built-in benchmark are next to the package in a checkout, inside it in a wheel."""

from __future__ import annotations

import os
from pathlib import Path

PROJECT_FILE = "ragbench.yaml"
_PACKAGE = Path(__file__).resolve().parent.parent


def checkout() -> Path | None:
    """The root of the checkout that the package is imported from, None for an installed wheel."""
    root = _PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "conf" / "config.yaml").is_file() else None


def configuration() -> Path:
    """The folder of Hydra's configuration."""
    root = checkout()
    return root / "conf" if root else _PACKAGE / "conf"


def fitted() -> Path:
    """The folder of what `ragbench fit --write` keeps: `conf` next to the project file, else the configuration's."""
    found = project()
    return found / "conf" if found else configuration()


def builtin() -> Path:
    """The folder that holds `corpus` and `qrels` of the built-in benchmark."""
    return checkout() or _PACKAGE / "builtin"


def project() -> Path | None:
    """The folder of the project: the nearest one with a project file, the working directory or above; None without."""
    here = Path.cwd().absolute()
    return next((place for place in (here, *here.parents) if (place / PROJECT_FILE).is_file()), None)


def ledger() -> Path:
    """The folder for what must outlive results: `.ragbench` next to the project file, else `state`."""
    found = project()
    return found / ".ragbench" if found else state()


def results() -> Path:
    """The default folder for everything a run writes: `results` of the project, else of the working directory."""
    return (project() or Path.cwd()) / "results"


def state() -> Path:
    """Return the folder of this user's state, such as the record of comparisons.

    That is `ragbench` in `XDG_STATE_HOME`, or in `~/.local/state`.
    """
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ragbench"
