"""The documents that a bundle serves: those that were measured, or a later generation of them.

The measurement stays in `bundle.json` and `golden.jsonl`. `generation.json` names the artefacts that answer now; it is
replaced in one step, so that a reader finds either the old generation or the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ragbench.base import files
from ragbench.base.types import BundleError, why_unreadable
from ragbench.boundary.json import checksummed_json, read_checksummed, read_json_file
from ragbench.extras.ship import bundle
from ragbench.extras.ship.bundle import Golden

NAME = "generation.json"


@dataclass(frozen=True)
class Change:
    """A golden query whose first ten hits differ from the measured ones.

    `lost` has the chunks that are missing now, each with the reason: `deleted` or `changed` (its document), or
    `outranked`.
    """

    query: str
    agreement: float
    lost: Mapping[str, str]


@dataclass(frozen=True)
class Drift:
    """How far the documents have moved from those that were measured.

    `chunks_changed`: the share of the chunks of the larger collection that are not in both. `agreement`: the mean share
    of the first ten hits of a golden query, by document, that are still among its first ten.
    """

    chunks_changed: float = 0.0
    agreement: float = 1.0
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Generation:
    """What a bundle serves. `number` is 0 for the measured documents; `made` is the time in ISO 8601.

    `digests` and `modified` have the digest and the modification time of every document's file, by docno. `golden` are
    the golden queries with their hits here. `kept` has a sentence for every file that cannot be used now, so that its
    earlier version is served.
    """

    number: int
    made: str
    collection: str
    artefacts: Mapping[str, str]
    digests: Mapping[str, str]
    modified: Mapping[str, float]
    golden: tuple[Golden, ...]
    kept: tuple[str, ...] = ()
    drift: Drift = Drift()


def state(folder: Path) -> object:
    """What changes when another generation or another bundle replaces this one; None where no bundle is."""
    record = file_version(folder / bundle.RECORD)
    return None if record is None else (record, file_version(folder / NAME))


def current(folder: Path, record: Mapping[str, Any]) -> Generation:
    """What the bundle in `folder` serves now. Raises BundleError for files that cannot be read."""
    path = folder / NAME
    try:
        return _read(path) if path.exists() else at_export(folder, record)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        name = path if path.exists() else folder / bundle.MODIFIED
        raise BundleError(f"{name} cannot be read ({why_unreadable(error)}): export the bundle again") from None


def _read(path: Path) -> Generation:
    return _form().validate_python(read_checksummed(path))


@cache
def _form() -> TypeAdapter[Generation]:
    return TypeAdapter(Generation)


def at_export(folder: Path, record: Mapping[str, Any]) -> Generation:
    """What the bundle served when it was exported."""
    return Generation(
        number=0,
        made="",
        collection=str(record["collection"]),
        artefacts=record["artefacts"],
        digests={},
        modified=read_json_file(folder / bundle.MODIFIED),
        golden=tuple(bundle.read_golden(folder)),
    )


def publish(folder: Path, generation: Generation) -> None:
    """Make the bundle in `folder` serve a generation; its artefacts must be complete."""
    files.write_text(folder / NAME, checksummed_json(asdict(generation)))


def file_version(path: Path) -> tuple[int, int] | None:
    """Inode and time of change, which differ when another file takes its place; None when the file does not exist."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # a name that is not text
        return None
    return status.st_ino, status.st_mtime_ns
