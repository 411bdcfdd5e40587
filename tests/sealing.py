"""Change sealed files as somebody would who knows the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ragbench.base.files import sha256
from ragbench.boundary.json import read_checksummed, write_checksummed
from ragbench.extras.ship import bundle
from ragbench.index.artefacts import MANIFEST, manifest_entry


def reseal(path: Path, **changes: Any) -> None:
    """Write a sealed file again with other values, under a seal that fits."""
    write_checksummed(path, {**read_checksummed(path), **changes})


def rewrite_part(path: Path, content: bytes) -> None:
    """Write a file of an index in a bundle again, with its digests in the manifest and the record."""
    path.write_bytes(content)
    manifest = next(parent for parent in path.parents if (parent / MANIFEST).exists()) / MANIFEST
    value = json.loads(manifest.read_text())
    value["files"][path.relative_to(manifest.parent).as_posix()] = manifest_entry(path)
    manifest.write_text(json.dumps(value, indent=1, sort_keys=True))
    folder = next(parent for parent in path.parents if (parent / bundle.RECORD).exists())
    name, digests = manifest.relative_to(folder).as_posix(), read_checksummed(folder / bundle.RECORD)["files"]
    if name in digests:
        reseal(folder / bundle.RECORD, files={**digests, name: sha256(manifest)})


def rewrite(folder: Path, name: str, text: str) -> None:
    """Write a file of a bundle again, with its digest in the record."""
    (folder / name).write_text(text)
    digests = read_checksummed(folder / bundle.RECORD)["files"]
    reseal(folder / bundle.RECORD, files={**digests, name: sha256(folder / name)})
