"""Calls of functions that others wrote: their errors become one sentence, and a digest says when they change."""

from __future__ import annotations

import hashlib
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ragbench.base.types import ConfigError, RagbenchError

FAILURES = (Exception, SystemExit)
"""What code of others may raise: anything but what ends the command, such as Ctrl-C."""

_T = TypeVar("_T")


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
