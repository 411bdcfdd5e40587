"""Digests of values: equal values have equal digests, on every machine and for every hash seed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

ASIDE = {"digest": False}
"""Metadata of a field that has no part in digests."""


def plain(value: Any) -> Any:
    """Reduce dataclasses, mappings, sets and paths to values that JSON can hold; mappings and sets lose their order.

    A dataclass becomes its fields plus the name of its class, so that two stages with equal fields stay apart.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.metadata != ASIDE}
        return {"": type(value).__qualname__, **fields}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, PurePath):
        return value.as_posix()
    return value


def canonical(value: Any) -> str:
    """One line of JSON: sorted keys, no spaces; equal values give equal text."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def text_digest(text: str, digits: int = 64) -> str:
    """The first hexadecimal digits of the SHA-256 of a text as it is, in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def shuffle_key(seed: int, name: str) -> str:
    """A sort key that puts names in a random order set by the seed; it does not depend on the other names."""
    return text_digest(f"{seed} {name}")


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, 64 hexadecimal digits."""
    return text_digest(canonical(value))


def short_digest(value: Any) -> str:
    """The first 16 digits of the digest: enough to name a folder."""
    return digest(value)[:16]
