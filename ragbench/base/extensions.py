"""Plug-ins registered with a decorator, found by name: stages, encoders, re-rankers, measures, retrievers.

A decorator registers its function or class when the module is imported. Modules are imported automatically when a
package names them as entry points of the group `ragbench`, or RAGBENCH_PLUGINS lists them (separated by commas).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from ragbench.base.errors import ConfigError, RagbenchError

FAILURES = (Exception, SystemExit)
"""What code of others may raise: anything but what ends the command, such as Ctrl-C."""

Kind = Literal["stage", "encoder", "reranker", "measure", "retriever"]
GROUP, VARIABLE = "ragbench", "RAGBENCH_PLUGINS"

_T = TypeVar("_T")

_registered: dict[tuple[Kind, str], Any] = {}


def register(kind: Kind, name: str, value: Any) -> None:
    """Keep a value under a name; it replaces an earlier one, because a notebook cell may run again."""
    _registered[kind, name] = value


def find(kind: Kind, name: str) -> Any:
    """The value registered under a name, or None. Raises ConfigError for a plug-in that fails."""
    _load()
    return _registered.get((kind, name))


def names(kind: Kind) -> list[str]:
    """All names of a kind."""
    _load()
    return sorted(name for registered_kind, name in _registered if registered_kind == kind)


def _load() -> None:
    """Import the plug-ins of installed packages and of RAGBENCH_PLUGINS, once. ConfigError for one that fails."""
    _load_entry_points()
    for module in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        _import_module(module)


@cache
def _load_entry_points() -> None:
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            point.load()
        except FAILURES as error:
            raise ConfigError(
                f"the plug-in '{point.name}' cannot be imported ({_error_text(error)}): remove it"
            ) from error


@cache
def _import_module(name: str) -> None:
    file = Path(f"{name}.py")
    try:
        if name.isidentifier() and file.is_file() and importlib.util.find_spec(name) is None:
            spec = importlib.util.spec_from_file_location(name, file.absolute())
            assert spec is not None and spec.loader is not None, "a file of Python has a loader"
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        importlib.import_module(name)
    except FAILURES as error:
        raise ConfigError(
            f"{VARIABLE} names {name}, which cannot be imported ({_error_text(error)}): correct it"
        ) from error


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"


def call(label: str, function: Callable[..., _T], *arguments: Any, **named: Any) -> _T:
    """Call a function of others. Raises ConfigError, naming `label` and the line, for anything that it raises."""
    try:
        return function(*arguments, **named)
    except RagbenchError:
        raise
    except FAILURES as error:
        raise ConfigError(f"{label} failed: {failure(error)}") from error


def failure(error: BaseException) -> str:
    """The kind, the message and the line of an error in code of others; in a library, the line that called it."""
    reason = " ".join(str(error).split())[:200]
    package_folder = str(Path(__file__).parents[1])
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(package_folder)
    ]
    user_frames = [
        frame for frame in frames if "site-packages" not in frame.filename and "asyncio" not in frame.filename
    ]
    line = ""
    if last := (user_frames or frames)[-1:]:
        cell = "ipykernel" in last[0].filename or last[0].filename.startswith("<")
        line = f" (line {last[0].lineno} of {last[0].name if cell else Path(last[0].filename).name})"
    return f"{type(error).__name__}{f': {reason}' if reason else ''}{line}"


def code_digest(function: Callable[..., Any]) -> str:
    """A digest of what a function does: of its source, or of its instructions when the source is not known."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        text = repr((code.co_code, code.co_consts, code.co_names) if code else function)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
