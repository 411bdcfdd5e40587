"""Index artefacts: immutable folders named by a digest of their inputs, built once and never left half-built.

An artefact lies at `<root>/<kind>/<fingerprint>/` and holds its files and `manifest.json`. It is built in a temporary
folder next to it, flushed to disk and renamed into place under a file lock. So a killed build leaves nothing that looks
finished, and of two processes that need the same artefact one builds it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ragbench.base.files import draft_of, publish_folder, remove_abandoned
from ragbench.base.fingerprint import plain, short_digest
from ragbench.base.types import IndexError_, why_unreadable
from ragbench.boundary.json import read_json_file

_LOG = logging.getLogger(__name__)

MANIFEST = "manifest.json"

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


Build = Callable[[Path], Mapping[str, Any] | None]
"""Fills an empty folder; may return what happened in this build, for the manifest."""


def fingerprint_of(kind: str, inputs: Any) -> str:
    """The fingerprint of the artefact of a kind that is made from `inputs`."""
    return short_digest([kind, inputs])


class SharedArtefacts(Protocol):
    """A place where machines share finished artefacts, each complete or not there."""

    url: str

    def fetch(self, kind: str, fingerprint: str, folder: Path) -> bool:
        """Fill an empty folder with an artefact; False if it is not there."""

    def keep(self, artefact: Artefact) -> None:
        """Upload an artefact unless it is there."""

    def forget(self, kind: str, fingerprint: str) -> None:
        """Delete an artefact that was damaged, or is to be built again."""


@dataclass(frozen=True)
class ArtefactStore:
    """A folder of artefacts; those of `shared` are copied instead of built, and others copied there."""

    root: Path
    shared: SharedArtefacts | None = None

    def get(self, kind: str, inputs: Any, build: Build) -> Artefact:
        """The artefact of a kind that is made from `inputs`; `build` fills an empty folder if there is none yet."""
        from filelock import FileLock

        fingerprint = fingerprint_of(kind, inputs)
        folder = self.root / kind / fingerprint
        artefact = self._open(kind, fingerprint, folder, quietly=True)
        if artefact is not None:
            return self._shared(artefact)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder.parent / f".{fingerprint}.lock")
            with lock:
                artefact = self._open(kind, fingerprint, folder)
                artefact = artefact or self._fetched(kind, fingerprint)
                return self._shared(artefact or self._build(kind, fingerprint, folder, inputs, build))
        except PermissionError as error:
            raise IndexError_(
                f"cannot write index artefacts below {self.root}: {error.strerror}; set paths.index"
            ) from None

    def receive(self, kind: str, fingerprint: str, fill: Callable[[Path], bool]) -> Artefact | None:
        """Keep an artefact from elsewhere whose files `fill` writes into an empty folder; None if it returns False.

        Raises IndexError_ if any byte has changed on the way.
        """
        folder = self.root / kind / fingerprint
        draft = draft_of(folder)
        draft.mkdir(parents=True)
        try:
            if not fill(draft):
                return None
            manifest, damage = self._read(kind, fingerprint, draft, in_full=True)
            if damage:
                raise IndexError_(f"artefact {kind} {fingerprint} was damaged on its way: {damage}")
            publish_folder(draft, folder)
            return Artefact(kind, fingerprint, folder, manifest, built=False)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _fetched(self, kind: str, fingerprint: str) -> Artefact | None:
        if self.shared is None:
            return None
        shutil.rmtree(self.root / kind / fingerprint, ignore_errors=True)  # damaged
        try:
            return self.receive(kind, fingerprint, partial(self.shared.fetch, kind, fingerprint))
        except IndexError_ as error:
            _LOG.warning(f"{error}; it is built again")
            self.shared.forget(kind, fingerprint)
            return None

    def _shared(self, artefact: Artefact) -> Artefact:
        if self.shared is not None:
            self.shared.keep(artefact)
        return artefact

    def has(self, kind: str, fingerprint: str) -> bool:
        """Whether there is an artefact of this name; it may be damaged."""
        return (self.root / kind / fingerprint).exists()

    def check(self) -> Iterator[tuple[str, str, str | None]]:
        """Read every artefact in full: kind, fingerprint, and its damage or None."""
        for folder in sorted(path for path in self.root.glob("*/*") if path.is_dir() and path.name[0] != "."):
            _, reason = self._read(folder.parent.name, folder.name, folder, in_full=True)
            yield folder.parent.name, folder.name, reason

    def forget(self, artefact: Artefact) -> None:
        """Delete an artefact, also from the shared place, so that it is built again when it is next needed."""
        from filelock import FileLock

        with FileLock(artefact.folder.parent / f".{artefact.fingerprint}.lock"):
            shutil.rmtree(artefact.folder, ignore_errors=True)
            if self.shared is not None:
                self.shared.forget(artefact.kind, artefact.fingerprint)

    def list(self) -> Iterator[Artefact]:
        """Every finished artefact, by kind and fingerprint."""
        for manifest in sorted(self.root.glob(f"*/[!.]*/{MANIFEST}")):
            folder = manifest.parent
            artefact = self._open(folder.parent.name, folder.name, folder)
            if artefact is not None:
                yield artefact

    def _open(self, kind: str, fingerprint: str, folder: Path, quietly: bool = False) -> Artefact | None:
        if not folder.exists():
            return None
        manifest, reason = self._read(kind, fingerprint, folder)
        if reason is None:
            return Artefact(kind, fingerprint, folder, manifest, built=False)
        if not quietly:
            _LOG.warning(f"index artefact {folder} is damaged: {reason}; it is built again")
        return None

    @staticmethod
    def _read(kind: str, fingerprint: str, folder: Path, in_full: bool = False) -> tuple[dict[str, Any], str | None]:
        """The manifest, and what is wrong with the artefact."""
        try:
            manifest = read_json_file(folder / MANIFEST, own=True)
            return manifest, damage_of(manifest, kind, fingerprint, folder, in_full)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            return {}, f"its manifest is unreadable ({why_unreadable(error)})"

    def _build(self, kind: str, fingerprint: str, folder: Path, inputs: Any, build: Build) -> Artefact:
        remove_abandoned(folder.parent)
        if folder.exists():
            shutil.rmtree(folder)
        draft = draft_of(folder)
        draft.mkdir()
        started = time.perf_counter()
        try:
            facts = build(draft) or {}
            manifest = {
                "kind": kind,
                "fingerprint": fingerprint,
                "inputs": plain(inputs),
                "build_seconds": round(time.perf_counter() - started, 3),
                **facts,
                "files": {
                    path.relative_to(draft).as_posix(): manifest_entry(path)
                    for path in sorted(draft.rglob("*"))
                    if path.is_file()
                },
            }
            (draft / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
            publish_folder(draft, folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return Artefact(kind, fingerprint, folder, manifest, built=True)


@dataclass(frozen=True)
class Survey(ArtefactStore):
    """A store that builds only chunk tables; for other missing artefacts it gives empty ones with `built` set.

    It builds chunk tables because the names of other artefacts depend on their size, and they are quick to build.
    """

    def get(self, kind: str, inputs: Any, build: Build) -> Artefact:
        """The artefact when it exists, else one without files."""
        if kind == "chunks":
            return replace(super().get(kind, inputs, build), built=False)
        fingerprint = fingerprint_of(kind, inputs)
        folder = self.root / kind / fingerprint
        artefact = self._open(kind, fingerprint, folder, quietly=True)
        return artefact or Artefact(kind, fingerprint, folder, {"files": {}}, built=True)


def check_ranges(starts: NDArray[np.integer], n_values: int, folder: Path) -> None:
    """Raise IndexError_ unless `starts[i]` to `starts[i + 1]` are ranges of values: others could fill the memory."""
    ascend = starts.ndim == 1 and len(starts) and not (starts[1:] < starts[:-1]).any()
    if not ascend or starts[0] != 0 or starts[-1] != n_values:
        raise misfit(folder)


def misfit(folder: Path) -> IndexError_:
    """The error for numbers in an artefact that do not fit together."""
    return IndexError_(f"{folder} contains numbers that do not fit: export the bundle again, or delete the index")
