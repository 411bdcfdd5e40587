"""The metadata that retrievers of other libraries give to a hit."""

from __future__ import annotations

import dataclasses
from typing import Any

from ragbench.base.fingerprint import plain
from ragbench.base.types import Hit

_ELSEWHERE = ("text", "context", "explanation")


def metadata(hit: Hit) -> dict[str, Any]:
    """All fields of a hit except its text, as plain values."""
    named = {field.name: getattr(hit, field.name) for field in dataclasses.fields(hit) if field.name not in _ELSEWHERE}
    return {name: plain(value) for name, value in named.items()}
