"""A configuration file as text: its nodes, lines and comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ragbench.base.errors import ConfigError
from ragbench.config.catalogue.nodes import Leaf, Node

DEFAULTS = "defaults"


@dataclass(frozen=True)
class Source:
    """A mapping of a YAML file and its description: the whole file, or an option that is in it with others."""

    path: Path
    lines: Sequence[str]
    root: yaml.Node
    description: str = ""

    @property
    def node(self) -> Node:
        """Its keys and values, without `defaults`."""
        return {key: value for key, value in self._node_of(self.root).items() if key != DEFAULTS}

    def _node_of(self, mapping: yaml.Node) -> Node:
        children: dict[str, Node | Leaf] = {}
        for key, value in _entries(mapping):
            if isinstance(value, yaml.MappingNode) and not value.flow_style:
                children[str(key.value)] = self._node_of(value)
                continue
            block_list = isinstance(value, yaml.SequenceNode) and not value.flow_style
            text = f"[{', '.join(map(self.text, value.value))}]" if block_list else self.text(value)
            children[str(key.value)] = Leaf(self.value(value), text, self.comment(key if block_list else value))
        return children

    @property
    def defaults(self) -> list[yaml.Node]:
        """The entries of the list `defaults`; none without that key."""
        listed = next((value for key, value in _entries(self.root) if key.value == DEFAULTS), None)
        if listed is not None and not isinstance(listed, yaml.SequenceNode):
            raise ConfigError(f"{self.location(listed)} defaults must be a list")
        return list(listed.value) if listed is not None else []

    @property
    def options(self) -> dict[str, Source]:
        """The options that are in this file together, each described by the comment above it."""
        return {
            str(key.value): replace(self, root=value, description=self.above(key)) for key, value in _entries(self.root)
        }

    def comment(self, node: yaml.Node) -> str:
        """The comment after a node, on the line where the node ends."""
        remainder = self.lines[node.end_mark.line][node.end_mark.column :]
        return remainder.partition("# ")[2].strip()

    def above(self, node: yaml.Node) -> str:
        """The comment lines directly above a key, as one."""
        line = node.start_mark.line
        first = line
        while first and self.lines[first - 1].lstrip().startswith("#"):
            first -= 1
        return _joined(self.lines[first:line])

    def value(self, node: yaml.Node) -> Any:
        """The plain value of a node. Raises ConfigError for one that cannot be made, such as `!!int x`."""
        try:
            return yaml.constructor.SafeConstructor().construct_document(node)
        except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError):
            raise ConfigError(f"{self.location(node)} has a value that cannot be read: put it into quotes") from None

    def location(self, node: yaml.Node) -> str:
        """File and line of a node, as messages begin."""
        return f"{self.path}:{node.start_mark.line + 1}:"

    def text(self, node: yaml.Node) -> str:
        """The text of a node in the file, in one line; a block of text as a quoted string."""
        if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
            return json.dumps(node.value, ensure_ascii=False)
        first, last = node.start_mark, node.end_mark
        if first.line == last.line:
            return self.lines[first.line][first.column : last.column]
        between = [self.lines[first.line][first.column :], *self.lines[first.line + 1 : last.line]]
        return " ".join(line.strip() for line in [*between, self.lines[last.line][: last.column]])

    @property
    def package(self) -> str:
        """The key that its `@package` line puts the file's keys under (`index.chunking`), empty without such a line."""
        lines = (line.removeprefix("@package ") for line in self.header if line.startswith("@package "))
        return next(lines, "").replace("_global_", "")

    @property
    def header(self) -> list[str]:
        """The comment lines that the file begins with, without `#`."""
        lines = []
        for line in self.lines:
            if not line.startswith("#"):
                break
            lines.append(line.lstrip("#").strip())
        return lines


def _entries(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    """Keys and values of a mapping; none of anything else."""
    return list(node.value) if isinstance(node, yaml.MappingNode) else []


def _joined(lines: Iterable[str]) -> str:
    return " ".join(line.strip().lstrip("#").strip() for line in lines)


_SCHEMA = "tag:yaml.org,2002:"
_NO_KEYS = ("bool", "null", "merge", "seq", "map")


class _Loader(yaml.SafeLoader):
    """Reads values as OmegaConf does: 1e-3 is a number, a date is a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?([0-9][0-9_]*)(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read(path: Path) -> Source:
    """Read a file. Raises ConfigError for one that is not a mapping in YAML."""
    if not path.is_file():  # reading a pipe would wait for ever
        raise ConfigError(f"{path} is not a file: replace it with a YAML file")
    try:
        return parse(path, path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text: save it as UTF-8") from None


@lru_cache(maxsize=512)  # more than conf/ has; a command or a notebook composes many arms of the same files
def parse(path: Path, text: str) -> Source:
    """The source of a text; `path` is what messages name. Raises ConfigError for one that is not a mapping in YAML."""
    try:
        loader = _Loader(text)
        loader.name = str(path)
        root = loader.get_single_node()
    except yaml.reader.ReaderError:
        raise ConfigError(f"{path} is not YAML (it holds a control character): repair it") from None
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark, " ".join(str(error.problem or error.context).split())
        raise ConfigError(_not_yaml(path, mark.line if mark else 0, problem)) from None
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{path} must hold a mapping: write {{}} when it sets nothing")
    _check(root, path, ())
    source = Source(path, text.split("\n"), root)
    # What its first comment says, without the commands in it.
    about = (line for line in source.header if not line.startswith(("@package", "python -m", "ragbench ")))
    return replace(source, description=_joined(about))


def _check(node: yaml.Node, path: Path, above: tuple[yaml.Node, ...]) -> None:
    """Raise ConfigError for a value that contains itself, a tag of another program, and a key that is not unique text.

    `above` are the nodes that contain this one.
    """
    if any(node is ancestor for ancestor in above):
        raise ConfigError(f"{path} holds a mapping that contains itself (& and *): write it out")
    tag, location = str(node.tag), f"{path}:{node.start_mark.line + 1}:"
    if not tag.startswith(_SCHEMA) or tag.startswith(f"{_SCHEMA}python"):
        raise ConfigError(
            f"{location} has the tag {tag.replace(_SCHEMA, '!!')}, which is not supported here: remove it"
        )
    names: set[str] = set()
    for key, _ in _entries(node):
        if key.tag.removeprefix(_SCHEMA) in _NO_KEYS:
            key_text = f"'{key.value}'" if isinstance(key, yaml.ScalarNode) else "a list or mapping"
            raise ConfigError(
                f"{path}:{key.start_mark.line + 1}: has {key_text} as a key: write a text, in quotes if needed"
            )
        if key.value in names:
            raise ConfigError(_not_yaml(path, key.start_mark.line, f"found duplicate key {key.value}"))
        names.add(key.value)
    inside = [part for pair in _entries(node) for part in pair]
    for part in node.value if isinstance(node, yaml.SequenceNode) else inside:
        _check(part, path, (*above, node))


def _not_yaml(file: object, line: int, problem: str) -> str:
    return f"{file}:{line + 1}: is not YAML ({problem}): repair this line or the one before"
