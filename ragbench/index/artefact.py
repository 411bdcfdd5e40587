"""An index artefact: a finished folder with a manifest of its files, and how damage to it is found."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbench.base.fingerprint import short_digest

MANIFEST = "manifest.json"
_ORIGINS = {"shipped": "came with ragbench", "cache": "from the cache"}
_BLOCK_BYTES = 4 * 2**20
_BLOCKS_READ = 64
"""Blocks of large files that are read when an artefact is opened: 256 MiB."""


@dataclass(frozen=True)
class Artefact:
    """A finished artefact: its folder, its manifest, and whether this process built it."""

    kind: str
    fingerprint: str
    folder: Path
    manifest: Mapping[str, Any]
    built: bool

    @property
    def taken(self) -> str:
        """Where its vectors came from when it was built, if not all were computed; its time is that of the others."""
        found: Mapping[str, int] = self.manifest.get("vectors", {})
        said = [f"{found[origin]:,} {words}" for origin, words in _ORIGINS.items() if found.get(origin)]
        return f"of {sum(found.values()):,}: {', '.join(said)}" if said else ""

    @property
    def size_bytes(self) -> int:
        """The bytes of its files without the manifest."""
        return sum(int(entry["bytes"]) for entry in self.manifest["files"].values())


def damage_of(
    manifest: Mapping[str, Any], kind: str, fingerprint: str, folder: Path, in_full: bool = False
) -> str | None:
    """The damage of an artefact, None without any.

    Small files are read whole. Of more than `_BLOCKS_READ` blocks of large files a random sample, seeded by the name,
    is read, or all blocks with `in_full`.
    """
    if (manifest["kind"], manifest["fingerprint"]) != (kind, fingerprint):
        return "it was made for something else"
    if short_digest([kind, manifest["inputs"]]) != fingerprint:
        return "its inputs do not give its name"
    files = manifest["files"]
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} - {MANIFEST, "write.lock"}
    if present != set(files):
        return f"files are missing or foreign: {', '.join(sorted(present ^ set(files)))}"
    if not all("blocks" in entry for entry in files.values()):
        return "it was written by another version of ragbench"
    for name, entry in files.items():
        size = (folder / name).stat().st_size
        if size != entry["bytes"]:
            return f"{name} has {size} bytes instead of {entry['bytes']}"
    large = [
        (name, n) for name, entry in files.items() if len(entry["blocks"]) > 1 for n in range(len(entry["blocks"]))
    ]
    if len(large) > _BLOCKS_READ and not in_full:
        large = sorted(random.Random(fingerprint).sample(large, _BLOCKS_READ))
    small = [(name, 0) for name, entry in files.items() if len(entry["blocks"]) == 1]
    for name, n in [*small, *large]:
        if _block_digest(folder / name, n) != files[name]["blocks"][n]:
            return f"{name} has changed"
    return None


def manifest_entry(path: Path) -> dict[str, Any]:
    """The entry of a file in the manifest: its size and the digests of its blocks."""
    size = path.stat().st_size
    return {"bytes": size, "blocks": [_block_digest(path, n) for n in range(max(1, -(-size // _BLOCK_BYTES)))]}


def _block_digest(path: Path, number: int) -> str:
    with path.open("rb") as stream:
        stream.seek(number * _BLOCK_BYTES)
        return hashlib.blake2b(stream.read(_BLOCK_BYTES), digest_size=16).hexdigest()
