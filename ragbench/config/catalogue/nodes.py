"""What a configuration file says, with the keys that its classes add: nested mappings that end in values.

A node is a block mapping of a file, or a section with a class; a list, and a mapping in braces, is a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

import yaml

from ragbench.base.build import TARGET

_LONGEST_DEFAULT = 160  # characters of a default that are shown in full
_NO_LINE_ENDS = 2**20


@dataclass(frozen=True)
class Leaf:
    """A value, as it is written, and the comment after it."""

    value: Any
    text: str
    comment: str = ""


Node = Mapping[str, Union["Node", Leaf]]


@dataclass(frozen=True)
class Parameter:
    """A key that can be overridden, such as `p6.depth`, its default as in a file, and the comment after it."""

    key: str
    default: str
    comment: str

    @property
    def short(self) -> str:
        """The default; of a long list the first two and the last value, of a long text its beginning."""
        if len(self.default) <= _LONGEST_DEFAULT:
            return self.default
        if not self.default.startswith("["):
            return f"{self.default[:40]}... ({len(self.default):,} characters)"
        values = self.default.strip("[]").split(", ")
        return f"[{values[0]}, {values[1]}, ... {values[-1]}] ({len(values)} values)"


def below(package: str, node: Any) -> Any:
    """A node or value below a key such as `index.chunking`."""
    for part in reversed(package.split(".") if package else ()):
        node = {part: node}
    return node


def overlaid(node: Node, above: Node) -> Node:
    """Both nodes as one; the values of `above` win, and mappings are merged."""
    merged = dict(node)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Leaf) and isinstance(value.value, dict):  # in braces
            value = {inner: Leaf(item, text_of(item)) for inner, item in value.value.items()}
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = overlaid(old, value)
        elif (
            isinstance(old, Leaf)
            and isinstance(value, Leaf)
            and isinstance(old.value, dict)
            and isinstance(value.value, dict)
        ):
            both = {**old.value, **value.value}
            merged[key] = Leaf(both, text_of(both), value.comment or old.comment)
        else:
            merged[key] = value
    return merged


def plain(node: Node) -> dict[str, Any]:
    """The values alone."""
    return {key: plain(value) if isinstance(value, Mapping) else value.value for key, value in node.items()}


def merged(values: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings as one; the values of `above` win, and mappings are merged."""
    both = dict(values)
    for key, value in above.items():
        old = both.get(key)
        both[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both


def parameters(node: Node, path: str = "") -> Iterator[Parameter]:
    """A parameter for each value; keys such as `_target_` give none."""
    for key, value in node.items():
        full_key = f"{path}.{key}".lstrip(".")
        if isinstance(value, Mapping):
            yield from parameters(value, full_key)
        elif not (key.startswith("_") and key.endswith("_")):
            yield Parameter(full_key, value.text, value.comment)


def targets(node: Node) -> Iterator[str]:
    """The classes that a node names."""
    for key, value in node.items():
        if isinstance(value, Mapping):
            yield from targets(value)
        elif key == TARGET:
            yield str(value.value)


def text_of(value: Any) -> str:
    """A plain value as a file has it, in one line: `{content: 1.0}`."""
    style = '"' if isinstance(value, str) and "\n" in value else None
    flow: dict[str, Any] = {
        "default_flow_style": True,
        "width": _NO_LINE_ENDS,
        "allow_unicode": True,
        "sort_keys": False,
    }
    text = str(yaml.safe_dump(value, default_style=style, **flow))
    return text.strip().removesuffix("...").strip()
