"""What people add with a decorator, found by name: stages, encoders, re-rankers, measures.

A decorator registers what it decorates when its module is imported. Modules are imported by themselves where a package
names them as entry points of the group `ragbench`, or the variable RAGBENCH_PLUGINS lists them (separated by commas).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import os
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from ragbench.errors import ConfigError

Kind = Literal["stage", "encoder", "reranker", "measure"]
GROUP, VARIABLE = "ragbench", "RAGBENCH_PLUGINS"

_found: dict[tuple[Kind, str], Any] = {}


def register(kind: Kind, name: str, value: Any) -> None:
    """Keep a value under a name; the last of a name counts, as a cell of a notebook is run again."""
    _found[kind, name] = value


def find(kind: Kind, name: str) -> Any:
    """What is registered under a name, None where nothing is. Raises ConfigError for a plug-in that fails."""
    load()
    return _found.get((kind, name))


def names(kind: Kind) -> list[str]:
    """All names of a kind."""
    load()
    return sorted(name for each, name in _found if each == kind)


def load() -> None:
    """Import the plug-ins of installed packages and of RAGBENCH_PLUGINS, once. ConfigError for one that fails."""
    _entry_points()
    for module in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        _module(module)


@cache
def _entry_points() -> None:
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:  # code of others, which may fail in any way
            raise ConfigError(f"the plug-in '{point.name}' cannot be imported ({_said(error)}): remove it") from error


@cache
def _module(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception as error:  # code of others, which may fail in any way
        raise ConfigError(f"{VARIABLE} names {name}, which cannot be imported ({_said(error)}): correct it") from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"


def code_digest(function: Callable[..., Any]) -> str:
    """A name for what a function does: of its source, or of its instructions where the source is not known."""
    try:
        said = inspect.getsource(function).encode()
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        said = repr((code.co_code, code.co_consts, code.co_names) if code else function).encode()
    return hashlib.sha256(said).hexdigest()[:12]
