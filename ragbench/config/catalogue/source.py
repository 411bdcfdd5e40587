"""A configuration file as text: its nodes, lines and comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ragbench.base.errors import ConfigError


@dataclass(frozen=True)
class Source:
    """A YAML file: its lines and its nodes."""

    path: Path
    lines: Sequence[str]
    root: yaml.Node

    def entries(self, node: yaml.Node | None = None) -> list[tuple[yaml.Node, yaml.Node]]:
        """Keys and values of a mapping, of the whole file by default."""
        mapping = node or self.root
        return list(mapping.value) if isinstance(mapping, yaml.MappingNode) else []

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
    def description(self) -> str:
        """What its first comment says, without the commands in it."""
        return _joined(line for line in self.header if not line.startswith(("@package", "python -m", "ragbench ")))

    @property
    def header(self) -> list[str]:
        """The comment lines that the file begins with, without `#`."""
        lines = []
        for line in self.lines:
            if not line.startswith("#"):
                break
            lines.append(line.lstrip("#").strip())
        return lines


def _joined(lines: Iterable[str]) -> str:
    return " ".join(line.strip().lstrip("#").strip() for line in lines)


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
    except yaml.YAMLError as error:
        raise ConfigError(_yaml_error_sentence(error)) from None
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{path} must hold a mapping: write {{}} when it sets nothing")
    if _is_endless(root, ()):
        raise ConfigError(f"{path} holds a mapping that contains itself (& and *): write it out")
    for node in _nodes_below(root):
        _check_node(node, path)
    return Source(path, text.split("\n"), root)


_SCHEMA = "tag:yaml.org,2002:"
_NO_KEYS = ("bool", "null", "merge", "seq", "map")


def _nodes_below(node: yaml.Node) -> Iterator[yaml.Node]:
    yield node
    inside = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else ()
    for part in node.value if isinstance(node, yaml.SequenceNode) else inside:
        yield from _nodes_below(part)


def _check_node(node: yaml.Node, path: Path) -> None:
    """Raise ConfigError for a tag of another program, and for a key that is not a text or number."""
    tag, location = str(node.tag), f"{path}:{node.start_mark.line + 1}:"
    if not tag.startswith(_SCHEMA) or tag.startswith(f"{_SCHEMA}python"):
        raise ConfigError(
            f"{location} has the tag {tag.replace(_SCHEMA, '!!')}, which is not supported here: remove it"
        )
    keys = [key for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
    names = [key.value for key in keys]
    for place_of_key, key in enumerate(keys):
        if isinstance(key, yaml.ScalarNode) and key.value in names[:place_of_key]:
            raise ConfigError(_not_yaml(path, key.start_mark.line, f"found duplicate key {key.value}"))
        if key.tag.removeprefix(_SCHEMA) in _NO_KEYS:
            key_text = f"'{key.value}'" if isinstance(key, yaml.ScalarNode) else "a list or mapping"
            raise ConfigError(
                f"{path}:{key.start_mark.line + 1}: has {key_text} as a key: write a text, in quotes if needed"
            )


def _is_endless(node: yaml.Node, above: tuple[yaml.Node, ...]) -> bool:
    inside = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else ()
    inside = node.value if isinstance(node, yaml.SequenceNode) else inside
    return any(node is ancestor for ancestor in above) or any(_is_endless(part, (*above, node)) for part in inside)


def _yaml_error_sentence(error: yaml.YAMLError) -> str:
    """One sentence about a file that is not YAML."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if mark is None:
        return f"a file is not YAML ({' '.join(str(error).split())}): repair it"
    problem = " ".join(str(error.problem or error.context).split())  # type: ignore[attr-defined]
    return _not_yaml(mark.name, mark.line, problem)


def _not_yaml(file: object, line: int, problem: str) -> str:
    return f"{file}:{line + 1}: is not YAML ({problem}): repair this line or the one before"
