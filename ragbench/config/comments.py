"""The comments that document keys and files: next to the fields of a class, and at the beginning of a YAML file."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_STATEMENT = re.compile(r" {4}(?:(\w+): |[\w@\"])")
"""A line of the body of a class, or of the parameters of a function, with the name of the field if it declares one."""


@cache
def comments_of(target: Callable[..., Any]) -> Mapping[str, str]:
    """By field of a class, or parameter of a function, the comment after it, else the comment lines above it.

    Those of the classes that it extends count as well. Empty where the source is not known, as in a notebook.
    """
    comments: dict[str, str] = {}
    for part in reversed(inspect.getmro(target)) if isinstance(target, type) else (target,):
        try:
            comments |= _comments_in(textwrap.dedent(inspect.getsource(part)).splitlines())
        except (OSError, TypeError):
            continue
    return comments


def _comments_in(lines: Iterable[str]) -> dict[str, str]:
    comments: dict[str, str] = {}
    field, above = "", ""
    for line in lines:
        code, _, comment = (part.strip() for part in line.partition("# "))
        if not code:
            above = f"{above} {comment}".strip()
            continue
        if statement := _STATEMENT.match(line):
            field = statement[1] or ""
            comments[field] = above
        if comment and not comment.startswith(("type:", "noqa")):
            comments[field] = comment
        above = ""
    return {field: comment for field, comment in comments.items() if field and comment}


def comment_above(file: Path) -> str:
    """The comment that a YAML file begins with, without its `@package` line and commands."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return " ".join(line for line in lines if not line.startswith(("@package", "python -m", "ragbench ")))
