"""YAML frontmatter: find it, parse it, and never fail on it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from ragbench.boundary.yaml import read_frontmatter

_BLOCK = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_UNCLOSED = re.compile(r"---[ \t]*\n\s*[\w\"'][\w \"'.-]*:(?:\s|\Z)")
_UNPRINTABLE = re.compile("[\0\ud800-\udfff]")  # YAML escapes can make them; no file or terminal takes them
# PyYAML lets the errors of int(), date() and dict lookups through: `d: 2026-02-30`, `b: !!bool x`, `n: !!int`.
_YAML_ERRORS = (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
_MAX_CHARS = 65_536  # a longer text takes seconds in PyYAML
_MAX_VALUES = 10_000
_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The parsed mapping (`{}` when absent or malformed) and the offset at which the body starts.

    `problem` is (warning name, message) when something was wrong, else None.
    """

    fields: Mapping[str, Any]
    body: int
    problem: tuple[str, str] | None = None


def split_frontmatter(text: str) -> Frontmatter:
    """Read the frontmatter at the very start of `text` (LF line ends); never raises.

    It stands between a first line `---` and a line `---` or `...`. A block that is not YAML is removed from the body. A
    block that is YAML but not a mapping (prose between two rules) and one without a closing line stay in the body.
    """
    if not text.startswith("---"):
        return Frontmatter({}, 0)
    block = _BLOCK.match(text)
    if block is None:
        if _UNCLOSED.match(text):
            message = "the frontmatter opened in line 1 is never closed; add a line `---` after it."
            return Frontmatter({}, 0, ("frontmatter-unclosed", message))
        return Frontmatter({}, 0)  # a thematic break
    try:
        if len(block[1]) > _MAX_CHARS:
            raise ValueError(f"the frontmatter is longer than {_MAX_CHARS:,} characters")
        value = _plain(read_frontmatter(block[1]))
    except _YAML_ERRORS as error:
        return Frontmatter({}, block.end(), ("frontmatter-malformed", f"{_reason(error)}; correct the YAML."))
    if value is None:
        return Frontmatter({}, block.end())
    if not isinstance(value, dict):
        message = f"the frontmatter is a {type(value).__name__}, not a mapping; write `key: value` lines."
        return Frontmatter({}, 0, ("frontmatter-malformed", message))
    return Frontmatter(value, block.end())


def _plain(value: Any) -> Any:
    """The value as str, int, float, bool, None, date, list and dict with str keys only.

    Raises ValueError on more than 10,000 values, 20 levels (aliases can make a few bytes endless) or integers over 64
    bits, which Python refuses to print from 4,300 digits on.
    """
    left = _MAX_VALUES

    def convert(item: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or depth > _MAX_DEPTH:
            raise ValueError("the frontmatter is nested too deep or too large")
        if isinstance(item, dict):
            return {str(convert(key, depth + 1)): convert(entry, depth + 1) for key, entry in item.items()}
        if isinstance(item, list | tuple):
            return [convert(entry, depth + 1) for entry in item]
        if isinstance(item, set):
            return sorted(str(convert(entry, depth + 1)) for entry in item)
        if isinstance(item, bytes):
            return item.decode("utf-8", errors="replace")
        if isinstance(item, int) and item.bit_length() > 64:
            raise ValueError("the frontmatter holds an integer of more than 64 bits")
        if isinstance(item, str):
            return _UNPRINTABLE.sub("\ufffd", item)
        if item is None or isinstance(item, int | float | datetime.date):
            return item
        raise ValueError(f"the frontmatter holds a {type(item).__name__}")

    return convert(value, 0)


def _reason(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        # Line 1 of the YAML is line 2 of the file.
        return f"line {error.problem_mark.line + 2}: {error.problem or error.context}"
    if isinstance(error, RecursionError):
        return "the frontmatter is nested too deep or too large"
    return " ".join(str(error).split()) or type(error).__name__
