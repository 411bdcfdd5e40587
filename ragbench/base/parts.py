"""Optional parts by name: ours and those of other packages, through the same entry points. See docs/extending.md.

A part is imported when it is asked for. In a checkout our own entry points are read from pyproject.toml, so that they
need no installation; one whose module is not there is left out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from ragbench.base import locations
from ragbench.base.errors import ConfigError

Group = Literal["ragbench.commands", "ragbench.executions", "ragbench.exports", "ragbench.stores"]
"""`commands`: modules like those of `ragbench.commands`. `executions`: `ragbench.config.executions.Execution`.
`exports`: `ragbench.export.file_format.FileFormat`. `stores`: makes a store of artefacts from (URL, say), by scheme;
`*` takes every other one."""


def names(group: Group) -> tuple[str, ...]:
    """The names of a group, ours first."""
    return tuple(_points(group))


def load(group: Group, name: str, option: str) -> Any:
    """A part. ConfigError for an unknown name, given by `option`, and for a part that fails."""
    point = _points(group).get(name)
    if point is None:
        raise ConfigError(f"{option} must be one of {', '.join(names(group))}, got {name}")
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{option} {name} cannot be used ({error}): install {point.module} again") from error


@cache
def _points(group: Group) -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in (*_own(group), *entry_points(group=group)):
        if point.name not in found and _is_there(point.module):
            found[point.name] = point
    return found


def _own(group: Group) -> list[EntryPoint]:
    import tomllib

    root = locations.checkout()
    if root is None:
        return []
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [EntryPoint(name, value, group) for name, value in project["entry-points"].get(group, {}).items()]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
