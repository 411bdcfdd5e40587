"""What can be configured, read from the configuration files as they stand: experiments, switches, parameters, data.

Comments are part of what is read: the first ones of a file describe it, one at the end of a line describes that line's
key. Nothing is composed and no stage is imported, so that the answer is there at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from ragbench import locations
from ragbench.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent

SPECS = {
    "index.lexical": "ragbench.index.lexical.LexicalSpec",
    "index.dense": "ragbench.index.dense.DenseSpec",
    "index.vocabulary": "ragbench.index.vocabulary.VocabularySpec",
    "index.encoder": "ragbench.models.resolve.EncoderSpec",
    "index.build": "ragbench.index.shards.Sharding",
    "latency": "ragbench.configuration.LatencySpec",
}
"""Sections of config.yaml that name no class and the class they become."""

_NO_SWITCHES = ("data", "exp", "tune")
_LONG = 160  # characters of a default that are shown in full


@dataclass(frozen=True)
class Parameter:
    """A key that can be overridden: `p6.depth`, its default as it is written, and what stands behind it."""

    key: str
    default: str
    comment: str

    @property
    def short(self) -> str:
        """The default, a long list shortened in its middle."""
        if len(self.default) <= _LONG or not self.default.startswith("["):
            return self.default
        values = self.default.strip("[]").split(", ")
        return f"[{values[0]}, {values[1]}, ... {values[-1]}] ({len(values)} values)"


@dataclass(frozen=True)
class Option:
    """One file of a group: `name` is what `group=name` takes; `about` are the docstrings of the classes it builds."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    targets: tuple[str, ...] = ()

    @property
    def about(self) -> tuple[str, ...]:
        """The docstrings of its classes."""
        return tuple(map(docstring, self.targets))


@dataclass(frozen=True)
class Group:
    """A folder of options and the one that is taken when none is named."""

    name: str
    default: str
    options: tuple[Option, ...]

    @property
    def description(self) -> str:
        """What it does when it is on; of a group that cannot be turned off, what its default does."""
        return next((each for each in self.options if each.name == "on"), self.options[0]).description

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of all options that do something, each key once."""
        found: dict[str, Parameter] = {}
        for option in self.options:
            for parameter in option.parameters if option.name != "off" else ():
                found.setdefault(parameter.key, parameter)
        return tuple(found.values())


@dataclass(frozen=True)
class Experiment:
    """A preset: what `+exp=name` takes and the overrides it stands for."""

    name: str
    description: str
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Catalogue:
    """All of the configuration in `folder`."""

    folder: Path

    @cached_property
    def experiments(self) -> tuple[Experiment, ...]:
        """Every preset by name."""
        return tuple(_experiment(path) for path in sorted((self.folder / "exp").glob("*.yaml")))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every group in the order of the defaults list."""
        return tuple(_group(self.folder / name, default) for name, default in self._defaults)

    @property
    def switches(self) -> tuple[Group, ...]:
        """The groups that change what is measured."""
        return tuple(group for group in self.groups if group.name not in _NO_SWITCHES)

    @property
    def data(self) -> Group:
        """The kinds of collection."""
        return next(group for group in self.groups if group.name == "data")

    @cached_property
    def search_spaces(self) -> tuple[Option, ...]:
        """What `ragbench tune` may vary."""
        return tuple(_option(path, "tune.space") for path in sorted((self.folder / "tune").glob("*.yaml")))

    @cached_property
    def settings(self) -> tuple[Parameter, ...]:
        """The parameters in config.yaml itself."""
        return tuple(_parameters(_read(self.folder / "config.yaml"), "", skip=("defaults",)))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every parameter: those of config.yaml, of the data, of the switches."""
        return (*self.settings, *(parameter for group in self.groups for parameter in group.parameters))

    @cached_property
    def _defaults(self) -> list[tuple[str, str]]:
        """Group and option of every entry of the defaults list that takes one."""
        entries = {key.value: value for key, value in _read(self.folder / "config.yaml").entries()}
        pairs = [pair for item in entries["defaults"].value if isinstance(item.value, list) for pair in item.value]
        return [(str(name.value), str(chosen.value)) for name, chosen in pairs if isinstance(chosen.value, str)]


def read(folder: Path | None = None) -> Catalogue:
    """The catalogue of a configuration folder, of the installed one by default. Raises ConfigError where it is none."""
    folder = folder or locations.configuration()
    if not (folder / "config.yaml").is_file():
        raise ConfigError(f"the configuration folder {folder} has no config.yaml: install ragbench again")
    return Catalogue(folder)


def docstring(target: str) -> str:
    """The docstring of a class of ragbench, read from its source and not imported; empty when it has none."""
    module, _, name = target.rpartition(".")
    path = _PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ast.get_docstring(node) or ""
    raise ConfigError(f"{target} names no class in {path}: the configuration and the package do not fit each other")


@dataclass(frozen=True)
class _Source:
    """A YAML file: its lines and its nodes."""

    path: Path
    lines: Sequence[str]
    root: yaml.Node

    def entries(self, node: yaml.Node | None = None) -> list[tuple[yaml.Node, yaml.Node]]:
        mapping = node or self.root
        return list(mapping.value) if isinstance(mapping, yaml.MappingNode) else []

    def comment(self, node: yaml.Node) -> str:
        """What stands behind a `#` after a node, on the line it ends on."""
        rest = self.lines[node.end_mark.line][node.end_mark.column :]
        return rest.partition("# ")[2].strip()

    def text(self, node: yaml.Node) -> str:
        """A node as it is written, in one line."""
        first, last = node.start_mark, node.end_mark
        if first.line == last.line:
            return self.lines[first.line][first.column : last.column]
        between = [self.lines[first.line][first.column :], *self.lines[first.line + 1 : last.line]]
        return " ".join(line.strip() for line in [*between, self.lines[last.line][: last.column]])

    @property
    def header(self) -> list[str]:
        """The comments that the file begins with, without their signs."""
        found = []
        for line in self.lines:
            if not line.startswith("#"):
                break
            found.append(line.lstrip("#").strip())
        return found


def _read(path: Path) -> _Source:
    text = path.read_text(encoding="utf-8")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no YAML ({' '.join(str(error).split())}): repair it") from None
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{path} must hold a mapping, {{}} when it has nothing to say")
    return _Source(path, text.split("\n"), root)


def _described(source: _Source) -> str:
    said = [line for line in source.header if not line.startswith(("@package", "python -m"))]
    return " ".join(said)


def _experiment(path: Path) -> Experiment:
    source = _read(path)
    overrides = []
    for key, value in source.entries():
        if key.value == "defaults":
            for item in value.value:
                ((name, chosen),) = item.value
                overrides.append(f"{str(name.value).removeprefix('override').strip().lstrip('/')}={chosen.value}")
        elif key.value != "name":
            overrides += [f"{each.key}={each.default}" for each in _leaves(source, value, str(key.value), key)]
    return Experiment(path.stem, _described(source), tuple(overrides))


def _group(folder: Path, default: str) -> Group:
    order = {default: 0, "on": 1}
    paths = sorted(folder.glob("*.yaml"), key=lambda path: (order.get(path.stem, 2), path.stem))
    if not paths:
        raise ConfigError(f"the defaults of config.yaml name '{folder.name}', but {folder} has no options")
    return Group(folder.name, default, tuple(_option(path, folder.name) for path in paths))


def _option(path: Path, prefix: str) -> Option:
    source = _read(path)
    package = next((line.removeprefix("@package ") for line in source.header if line.startswith("@package ")), prefix)
    targets = tuple(
        str(value.value) for node in _mappings(source.root) for key, value in node.value if key.value == "_target_"
    )
    return Option(path.stem, _described(source), tuple(_parameters(source, package)), targets)


def _parameters(source: _Source, prefix: str, skip: Sequence[str] = ()) -> Iterator[Parameter]:
    for key, value in source.entries():
        if key.value not in skip:
            yield from _leaves(source, value, f"{prefix}.{key.value}" if prefix else str(key.value), key)


def _leaves(source: _Source, node: yaml.Node, key: str, name: yaml.Node) -> Iterator[Parameter]:
    """A block mapping opened into its keys, any other value as it is; keys such as `_target_` are no parameters."""
    if str(name.value).startswith("_") and str(name.value).endswith("_"):
        return
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        for inner, value in source.entries(node):
            yield from _leaves(source, value, f"{key}.{inner.value}", inner)
        return
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:
        yield Parameter(key, f"[{', '.join(source.text(item) for item in node.value)}]", source.comment(name))
        return
    yield Parameter(key, source.text(node), source.comment(node))


def _mappings(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        yield node
        for _, value in node.value:
            yield from _mappings(value)
