"""Folders: the configuration, the built-in benchmark, the project, and data of the wheels of other projects.

The configuration and the built-in benchmark are next to the package in a checkout, inside it in a wheel. A bundle may
carry data of other wheels for a small installation: it has the same place below the folder `carried` as below the root
of the wheel. It is data or code of others, so its reader compares its digest with one that is written in this package.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

CARRIED = "carried"

_bundles: list[Path] = []

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
    project_folder = project()
    return project_folder / "conf" if project_folder else configuration()


def builtin() -> Path:
    """The folder that holds `corpus` and `qrels` of the built-in benchmark."""
    return checkout() or _PACKAGE / "builtin"


def project() -> Path | None:
    """The folder of the project: the nearest one with a project file, the working directory or above; None without."""
    current_folder = Path.cwd().absolute()
    return next(
        (folder for folder in (current_folder, *current_folder.parents) if (folder / PROJECT_FILE).is_file()), None
    )


def ledger() -> Path:
    """The folder for what must outlive results: `.ragbench` next to the project file, else `state`."""
    project_folder = project()
    return project_folder / ".ragbench" if project_folder else state()


def results() -> Path:
    """The default folder for everything a run writes: `results` of the project, else of the working directory."""
    return (project() or Path.cwd()) / "results"


def state() -> Path:
    """Return the folder of this user's state, such as the record of comparisons.

    That is `ragbench` in `XDG_STATE_HOME`, or in `~/.local/state`.
    """
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ragbench"


def cache() -> Path:
    """The folder of what this user's projects share and can make again: `ragbench` in XDG_CACHE_HOME, or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragbench"


def look_also_in(bundle: Path) -> None:
    """Find what is not installed in the folder of this bundle, if it carries anything."""
    if (bundle / CARRIED).is_dir() and bundle not in _bundles:
        _bundles.append(bundle)


def in_wheel(wheel: str, path: str) -> Path | None:
    """A file or folder at `path` below the root of an installed wheel, else of a bundle that has it, else None."""
    try:
        return Path(str(distribution(wheel).locate_file(path)))
    except PackageNotFoundError:
        return next(
            (carried_path for bundle in reversed(_bundles) if (carried_path := bundle / CARRIED / path).exists()), None
        )
