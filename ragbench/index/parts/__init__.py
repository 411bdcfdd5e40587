"""The parts of an index, one module each: `graph.py` holds `PART`, which stages need as `graph`.

A module with a function `of_source` also makes the part of a further source by its name: `lexical:documents`. There is
no other list of parts: a new part is a new module here, or the module of a stage calls `register` with it.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from typing import Any

from ragbench.base.errors import ConfigError
from ragbench.index.part import Part, StoredPart

AnyPart = Part[Any] | StoredPart[Any]

_registered: dict[str, AnyPart] = {}


def register(part: AnyPart) -> None:
    """Make a part known by its name. ConfigError when this package has a part of that name."""
    if _module(part.name) is not None:
        raise ConfigError(f"the index has a part '{part.name}' already: give yours another name")
    _registered[part.name] = part


def find(name: str) -> AnyPart | None:
    """The part of a name, None when there is none."""
    if name in _registered:
        return _registered[name]
    kind, _, source = name.partition(":")
    place = _module(kind)
    if place is None:
        return None
    module = importlib.import_module(place)
    found: AnyPart = module.of_source(source) if source else module.PART
    return found


@cache
def _module(name: str) -> str | None:
    path = f"{__name__}.{name}"
    return path if name.isidentifier() and importlib.util.find_spec(path) is not None else None
