"""Calls of functions that others wrote: their errors become one sentence, and a digest says when they change."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ragbench.base.types import FAILURES, ConfigError, RagbenchError, failure

_T = TypeVar("_T")


def call(label: str, function: Callable[..., _T], *arguments: Any, **named: Any) -> _T:
    """Call a function of others. Raises ConfigError, naming `label` and the line, for anything that it raises."""
    try:
        return function(*arguments, **named)
    except RagbenchError:
        raise
    except FAILURES as error:
        raise ConfigError(f"{label} failed: {failure(error)}") from error


def code_digest(function: Callable[..., Any]) -> str:
    """A digest of what a function does: of its source, or of its instructions when the source is not known."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        text = repr((code.co_code, code.co_consts, code.co_names) if code else function)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
