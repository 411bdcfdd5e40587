"""Change sealed files as somebody would who knows the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragbench.base.files import sha256
from ragbench.boundary.sealed import read_sealed, write_sealed
from ragbench.extras.ship import bundle


def reseal(path: Path, **changes: Any) -> None:
    """Write a sealed file again with other values, under a seal that fits."""
    write_sealed(path, {**read_sealed(path), **changes})


def rewrite(folder: Path, name: str, text: str) -> None:
    """Write a file of a bundle again, with its digest in the record."""
    (folder / name).write_text(text)
    digests = read_sealed(folder / bundle.RECORD)["files"]
    reseal(folder / bundle.RECORD, files={**digests, name: sha256(folder / name)})
