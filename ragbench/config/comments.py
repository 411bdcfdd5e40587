"""The comments that document keys and files: next to the fields of a class, and at the beginning of a YAML file."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def comments_of(target: Callable[..., Any]) -> Mapping[str, str]:
    """By field of a class, or parameter of a function, the comment after it, else the comment lines above it.

    Those of the classes that it extends count as well. Empty where the source is not known, as in a notebook.
    """
    comments: dict[str, str] = {}
    for part in reversed(inspect.getmro(target)) if isinstance(target, type) else (target,):
        try:
            lines = textwrap.dedent(inspect.getsource(part)).splitlines()
        except (OSError, TypeError):
            continue
        statement = ast.parse("\n".join(lines)).body[0]
        comments |= {name: comment for name, node in _named(statement) if (comment := _comment(node, lines))}
    return comments


def comment_above(file: Path) -> str:
    """The comment that a YAML file begins with, without its `@package` line and commands."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return " ".join(line for line in lines if not line.startswith(("@package", "python -m", "ragbench ")))


def _named(statement: ast.stmt) -> list[tuple[str, ast.expr | ast.arg | ast.AnnAssign]]:
    """The fields of a class, or the parameters of a function, each with the node that a comment belongs to."""
    if isinstance(statement, ast.ClassDef):
        return [(ast.unparse(node.target), node) for node in statement.body if isinstance(node, ast.AnnAssign)]
    if not isinstance(statement, ast.FunctionDef):
        return []
    parameters = statement.args.args
    defaults = [None] * (len(parameters) - len(statement.args.defaults)) + statement.args.defaults
    return [(p.arg, default or p) for p, default in zip(parameters, defaults, strict=True)]


def _comment(node: ast.expr | ast.arg | ast.AnnAssign, lines: list[str]) -> str:
    first, last, column = node.lineno, node.end_lineno or node.lineno, node.end_col_offset or 0
    comment = lines[last - 1].encode()[column:].decode().partition("# ")[2].strip()
    if comment and not comment.startswith(("type:", "noqa")):
        return comment
    above: list[str] = []
    while lines[first - 2].lstrip().startswith("#"):
        first -= 1
        above.insert(0, lines[first - 1].strip().lstrip("#").strip())
    return " ".join(above)
