"""YAML from outside: read within limits, and only what has one meaning; every refusal names a line.

Only plain values are made (no Python objects). Refused are repeated keys, aliases (a few bytes of them can stand for
gigabytes, and a value may contain itself), deep nesting, several documents, and numbers or dates that do not exist.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from ragbench.base.types import BoundaryError
from ragbench.boundary.json import decoded, excerpt, read_bytes, size_in_words

_MAX_BYTES = 2**24
_MAX_DEPTH = 32
_LIBYAML_MAX_CHARS = 4_000
_MAX_EVENTS = 2_000_000
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)


def read_yaml(
    content: bytes | str, *, max_bytes: int = _MAX_BYTES, max_depth: int = _MAX_DEPTH, aliases: bool = False
) -> Any:
    """The value of a text of YAML; None for an empty one. Raises BoundaryError, a ValueError.

    With `aliases` a value may be named and repeated, but not contain itself.
    """
    if len(content) > max_bytes:
        raise BoundaryError(f"larger than {size_in_words(max_bytes)}")
    text = decoded(content) if isinstance(content, bytes) else content
    try:
        # The events are read without recursion, so that the parser never meets what would exhaust its stack.
        _check_events(text, max_depth, aliases)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise BoundaryError(_reason_of(error)) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise BoundaryError(f"invalid YAML ({' '.join(str(error).split())[:120]})") from None


def read_yaml_nodes(text: str) -> yaml.Node | None:
    """The nodes of a text of YAML with their places, to change a part and keep the rest. Raises BoundaryError."""
    read_yaml(text)
    return yaml.compose(text, Loader=yaml.SafeLoader)


def read_frontmatter(text: str) -> Any:
    """The value of frontmatter, as lenient as other readers of notes: a repeated key has its last value.

    Raises what PyYAML raises, RecursionError among it; the caller bounds what aliases stand for.
    """
    # libyaml's composer recurses in C: some ten thousand nested brackets overflow the stack of the process. A short
    # text cannot nest that deep; a longer one goes to the Python loader, which raises RecursionError.
    fast = hasattr(yaml, "CSafeLoader") and len(text) <= _LIBYAML_MAX_CHARS
    return yaml.load(text, Loader=yaml.CSafeLoader if fast else yaml.SafeLoader)


def read_yaml_file(path: Path, *, max_bytes: int = _MAX_BYTES, aliases: bool = False) -> Any:
    """The value of a YAML file. Raises BoundaryError, and OSError for a file that cannot be read."""
    return read_yaml(read_bytes(path, max_bytes), max_bytes=max_bytes, aliases=aliases)


def _reason_of(error: yaml.MarkedYAMLError) -> str:
    """What a parser says about a text, with the line."""
    mark = error.problem_mark or error.context_mark
    problem = " ".join((error.problem or error.context or "unexpected structure").split())
    return f"invalid YAML at line {mark.line + 1}: {problem[:120]}" if mark else f"invalid YAML: {problem[:120]}"


def _check_events(text: str, max_depth: int, aliases: bool) -> None:
    """Raise BoundaryError for the first event that is not allowed."""
    documents = 0
    open_anchors: list[str | None] = []
    for number, event in enumerate(yaml.parse(text, Loader=_Parser)):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if number > _MAX_EVENTS:
            raise BoundaryError(f"more than {_MAX_EVENTS:,} values up to line {line}")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise BoundaryError(f"a second document begins at line {line}: keep one")
        elif isinstance(event, yaml.AliasEvent):
            if not aliases:
                raise BoundaryError(f"line {line} repeats a value with *{excerpt(event.anchor)}: write the value out")
            if event.anchor in open_anchors:
                raise BoundaryError(f"the value &{excerpt(event.anchor)} contains itself at line {line}")
        elif isinstance(event, _OPENING):
            open_anchors.append(event.anchor)
            if len(open_anchors) > max_depth:
                raise BoundaryError(f"nested deeper than {max_depth} levels at line {line}")
        elif isinstance(event, _CLOSING):
            open_anchors.pop()


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """A safe loader that says in which line a value cannot be made, and refuses repeated keys."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep=deep)
        except (yaml.YAMLError, BoundaryError, RecursionError):
            raise
        # What int(), date() and look-ups of PyYAML raise: `d: 2026-02-30`, `b: !!bool x`, `n: !!int`.
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            raise BoundaryError(f"the value at line {_line(node)} cannot be read: put it into quotes") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise BoundaryError(f"the number at line {_line(node)} is not finite")
        if isinstance(value, int) and value.bit_length() > 64:
            raise BoundaryError(f"the number at line {_line(node)} does not fit in 64 bits: put it into quotes")
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            raise BoundaryError(f"the text at line {_line(node)} holds half of a character (a lone surrogate)")
        return value

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, Any]:
        if isinstance(node, yaml.MappingNode):
            seen: set[Any] = set()
            for key_node, _ in node.value:
                if key_node.tag == "tag:yaml.org,2002:merge":
                    continue
                key = self.construct_object(key_node, deep=True)
                if not isinstance(key, Hashable):
                    raise BoundaryError(f"the key at line {_line(key_node)} is not a text: put it into quotes")
                if key in seen:
                    raise BoundaryError(f"line {_line(key_node)} repeats the key '{excerpt(key)}': keep one of the two")
                seen.add(key)
        return super().construct_mapping(node, deep=deep)  # type: ignore[no-any-return]


_Parser: Any = getattr(yaml, "CLoader", yaml.Loader)
"""Only its parser of events is used, which makes no values."""


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
