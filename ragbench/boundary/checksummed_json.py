"""Sealed files: JSON that holds a digest of its own content, so that a flipped bit or a cut is noticed.

They also hold the digests of other files that must not change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragbench.base.errors import Damaged, why_unreadable
from ragbench.base.files import write_text
from ragbench.boundary.json import read_json, read_json_file

SEAL = "seal"


def checksummed_json(value: Mapping[str, Any]) -> str:
    """A mapping as sealed JSON; values that JSON cannot hold become text."""
    text = json.dumps(value, indent=1, default=str)
    return json.dumps({**read_json(text, own=True), SEAL: _digest_of_text(text)}, indent=1)


def write_checksummed(path: Path, value: Mapping[str, Any]) -> dict[str, Any]:
    """Write a mapping as sealed JSON; returns the mapping as it will be read."""
    text = checksummed_json(value)
    write_text(path, text)
    written = read_json(text, own=True)
    del written[SEAL]
    return dict(written)


def read_checksummed(path: Path) -> dict[str, Any]:
    """The mapping that `write_checksummed` wrote. Raises Damaged for a changed file, FileNotFoundError without one."""
    try:
        value = read_json_file(path, own=True)
        seal = value.pop(SEAL)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise Damaged(f"{path.name} cannot be read ({why_unreadable(error)})") from None
    if seal != _digest_of_text(json.dumps(value, indent=1)):
        raise Damaged(f"{path.name} has changed since it was written")
    return dict(value)


def _digest_of_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
