"""What can be configured, read from the configuration files: experiments, switches, parameters, data.

Comments are read, too: those at the beginning of a file describe it, one at the end of a line describes the key of that
line. Nothing is composed and no stage is imported, so that reading is fast.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from ragbench.base import locations
from ragbench.base.errors import ConfigError
from ragbench.base.suggestions import did_you_mean
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config.catalogue.names import ALIASES, label, numbered
from ragbench.config.catalogue.source import Source
from ragbench.config.catalogue.source import read as read_source

__all__ = ["ALIASES", "SPECS", "Catalogue", "Experiment", "Group", "Option", "Parameter", "Tree", "docstring"]
__all__ += ["label", "numbered", "read"]

_ROOT = Path(__file__).resolve().parents[3]

_SECTIONS, _MODES = "ragbench.config.sections", "ragbench.search.engine.modes"
Tree = Mapping[str, "Tree | None"]
SPECS = {
    "topics": "ragbench.benchmark.topics.derive.DeriveSpec",
    "links": f"{_SECTIONS}.LinksSpec",
    "p2": f"{_SECTIONS}.Headings",
    "p4": f"{_SECTIONS}.FieldWeights",
    "p9": f"{_SECTIONS}.FieldWeights",
    "budget": "ragbench.evidence.policy.BudgetSpec",
    "statistics": "ragbench.evidence.policy.StatisticsSpec",
    "tune": f"{_SECTIONS}.TuneSpec",
    "execution": f"{_SECTIONS}.ExecutionSpec",
    "tracking": f"{_SECTIONS}.TrackingSpec",
    "paths": f"{_SECTIONS}.PathsSpec",
    "artefacts": f"{_SECTIONS}.ArtefactsSpec",
    "index.lexical": "ragbench.index.lexical.LexicalSpec",
    "index.passage": "ragbench.index.texts.PassageTemplate",
    "index.dense": "ragbench.index.dense.DenseSpec",
    "index.vocabulary": "ragbench.index.vocabulary.VocabularySpec",
    "index.encoder": "ragbench.models.resolve.EncoderSpec",
    "index.build": "ragbench.index.shards.Sharding",
    "latency": "ragbench.evaluation.latency.LatencySpec",
    **{f"modes.{mode}": f"{_MODES}.ModeSpec" for mode in ("keyword", "semantic", "hybrid", "rerank")},
}
"""Sections of config.yaml without `_target_`, and the class that each becomes."""

_NO_SWITCHES = ("data", "exp", "tune")
_TEXT = "tag:yaml.org,2002:str"
_LONGEST_DEFAULT = 160  # characters of a default that are shown in full


@dataclass(frozen=True)
class Parameter:
    """A key that can be overridden, such as `p6.depth`, its default as in the file, and the comment after it."""

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


@dataclass(frozen=True)
class Option:
    """One file of a group, chosen with `group=name`; `targets` are the classes that it builds."""

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
        """The description of `on`, or of the default when the group has no `on`."""
        return next((each for each in self.options if each.name == "on"), self.options[0]).description

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of all options but `off`, each key once."""
        found: dict[str, Parameter] = {}
        for option in self.options:
            for parameter in option.parameters if option.name != "off" else ():
                found.setdefault(parameter.key, parameter)
        return tuple(found.values())


@dataclass(frozen=True)
class Experiment:
    """A preset, chosen with `exp=name`: the options it chooses by group, and the values it sets by key."""

    name: str
    description: str
    choices: Mapping[str, str]
    values: Mapping[str, str]

    @property
    def overrides(self) -> tuple[str, ...]:
        """The overrides that have the same effect."""
        return tuple(f"{key}={value}" for key, value in {**self.choices, **self.values}.items())


@dataclass(frozen=True)
class Catalogue:
    """All of the configuration in `folder`."""

    folder: Path

    @cached_property
    def experiments(self) -> tuple[Experiment, ...]:
        """Every preset by name."""
        return tuple(_experiment(path) for path in sorted((self.folder / "exp").glob("*.yaml")))

    def experiment(self, name: str) -> Experiment:
        """The preset of this name. Raises ConfigError for a file that cannot be read."""
        return _experiment(self.folder / "exp" / f"{name}.yaml")

    @cached_property
    def version(self) -> tuple[tuple[str, int, int], ...]:
        """Path, time of change and size of every file; equal versions mean equal content."""
        paths = [self.folder / "config.yaml", *sorted(self.folder.glob("*/*.yaml"))]
        found = [(str(path), path.stat() if path.exists() else None) for path in paths]
        return tuple((path, stat.st_mtime_ns if stat else 0, stat.st_size if stat else 0) for path, stat in found)

    @cached_property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """By group, the names of its options; no file is read."""
        folders = sorted(path for path in self.folder.iterdir() if path.is_dir())
        return {folder.name: tuple(sorted(path.stem for path in folder.glob("*.yaml"))) for folder in folders}

    @cached_property
    def defaults(self) -> Mapping[str, str]:
        """By group, the option that is taken when none is named."""
        return dict(self._defaults)

    @cached_property
    def tree(self) -> Tree:
        """Every key that any file sets, as nested mappings; None for a value, even if the value is a `{}` mapping."""
        found: dict[str, Any] = {}
        _add_file(found, read_source(self.folder / "config.yaml"), "")
        found.pop("defaults", None)
        for group in self.defaults:
            for path in sorted((self.folder / group).glob("*.yaml")):
                source = read_source(path)
                _add_file(found, source, source.package or group)
        return found

    def content(self, group: str, option: str) -> Any:
        """The content of an option's file, with interpolations unresolved."""
        return read_yaml_file(self.folder / group / f"{option}.yaml")

    def check_files(self) -> None:
        """Raise ConfigError for the first file that is not a mapping in YAML."""
        for path, *_ in self.version:
            read_source(Path(path))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every group in the order of the defaults list."""
        return tuple(_group(self.folder / name, default) for name, default in self._defaults)

    @property
    def switches(self) -> tuple[Group, ...]:
        """The groups that change the pipeline or the index."""
        return tuple(group for group in self.groups if group.name not in _NO_SWITCHES)

    @property
    def data(self) -> Group:
        """The kinds of collection."""
        return next(group for group in self.groups if group.name == "data")

    @cached_property
    def search_spaces(self) -> tuple[Option, ...]:
        """The search spaces of `ragbench tune`."""
        return tuple(_option(path, "tune.space") for path in sorted((self.folder / "tune").glob("*.yaml")))

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The classes that config.yaml itself names."""
        return _targets(read_source(self.folder / "config.yaml"))

    @cached_property
    def settings(self) -> tuple[Parameter, ...]:
        """The parameters in config.yaml itself."""
        return tuple(_parameters(read_source(self.folder / "config.yaml"), "", skip=("defaults",)))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every parameter: those of config.yaml, of the data, of the switches."""
        return (*self.settings, *(parameter for group in self.groups for parameter in group.parameters))

    @cached_property
    def _defaults(self) -> list[tuple[str, str]]:
        """Group and option of every entry of the defaults list that names both."""
        file = self.folder / "config.yaml"
        listed = {key.value: value for key, value in read_source(file).entries()}.get("defaults")
        if not isinstance(listed, yaml.SequenceNode):
            raise ConfigError(f'{file} must have a list `defaults` of entries such as `- p6: "off"`')
        return [chosen for item in listed.value for chosen in self._default(file, item)]

    def _default(self, file: Path, item: yaml.Node) -> Iterator[tuple[str, str]]:
        """Group and option of an entry of the defaults list; nothing for `_self_`, and for a list of options."""
        place = f"{file}:{item.start_mark.line + 1}:"
        if isinstance(item, yaml.ScalarNode) and item.value == "_self_":
            return
        if not (isinstance(item, yaml.MappingNode) and len(item.value) == 1):
            raise ConfigError(f'{place} must be an entry such as `- p6: "off"`')
        ((name, chosen),) = item.value
        options = self.choices.get(name.value)
        if options is None:
            raise ConfigError(
                f"{place} names '{name.value}', which is not a folder{did_you_mean(name.value, self.choices)}"
            )
        if isinstance(chosen, yaml.SequenceNode):
            return
        if chosen.tag != _TEXT or chosen.value not in options:
            hint = ", in quotes" if chosen.value in options else did_you_mean(str(chosen.value), options)
            raise ConfigError(f"{place} {name.value} cannot be {chosen.value or 'empty'}{hint}")
        yield str(name.value), str(chosen.value)


def read(folder: Path | None = None) -> Catalogue:
    """The catalogue of a configuration folder (default: the installed one). Raises ConfigError without config.yaml."""
    folder = folder or locations.configuration()
    if not (folder / "config.yaml").is_file():
        raise ConfigError(f"the configuration folder {folder} has no config.yaml: install ragbench again")
    return Catalogue(folder)


def docstring(target: str) -> str:
    """The docstring of a class of ragbench, read from its source and not imported; empty when it has none."""
    module, _, name = target.rpartition(".")
    path = _ROOT.joinpath(*module.split(".")).with_suffix(".py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ast.get_docstring(node) or ""
    raise ConfigError(f"{target} names no class in {path}: install ragbench again")


def _description(source: Source) -> str:
    return " ".join(line for line in source.header if not line.startswith(("@package", "python -m")))


def _experiment(path: Path) -> Experiment:
    source = read_source(path)
    if "@package _global_" not in source.header:
        raise ConfigError(f"{path} must begin with the line `# @package _global_`")
    choices: dict[str, str] = {}
    values: dict[str, str] = {}
    for key, value in source.entries():
        if key.value == "defaults":
            choices.update(_choice(path, item) for item in value.value)
        elif key.value != "name":
            values.update({each.key: each.default for each in _leaves(source, value, str(key.value), key)})
    return Experiment(path.stem, _description(source), choices, values)


def _choice(path: Path, item: Any) -> tuple[str, str]:
    """Group and option of an entry of an experiment's defaults."""
    if isinstance(item, yaml.MappingNode) and len(item.value) == 1:
        ((name, chosen),) = item.value
        words = str(name.value).split()
        if words[:1] == ["override"] and len(words) == 2 and chosen.tag == _TEXT:
            return words[1].lstrip("/"), str(chosen.value)
    raise ConfigError(f'{path}: each of its defaults must be an entry such as `override /p6: "on"`, with the quotes')


def _group(folder: Path, default: str) -> Group:
    order = {default: 0, "on": 1}
    paths = sorted(folder.glob("*.yaml"), key=lambda path: (order.get(path.stem, 2), path.stem))
    if not paths:
        raise ConfigError(f"the defaults of config.yaml name '{folder.name}', but {folder} has no options")
    return Group(folder.name, default, tuple(_option(path, folder.name) for path in paths))


def _option(path: Path, prefix: str) -> Option:
    source = read_source(path)
    parameters = tuple(_parameters(source, source.package or prefix))
    return Option(path.stem, _description(source), parameters, _targets(source))


def _targets(source: Source) -> tuple[str, ...]:
    return tuple(
        str(value.value) for node in _mappings(source.root) for key, value in node.value if key.value == "_target_"
    )


def _parameters(source: Source, prefix: str, skip: Sequence[str] = ()) -> Iterator[Parameter]:
    for key, value in source.entries():
        if key.value not in skip:
            yield from _leaves(source, value, f"{prefix}.{key.value}" if prefix else str(key.value), key)


def _leaves(source: Source, node: yaml.Node, key: str, name: yaml.Node) -> Iterator[Parameter]:
    """The parameters below a node: a block mapping gives one for each key; keys such as `_target_` give none."""
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


def _add_file(tree: dict[str, Any], source: Source, package: str) -> None:
    """Add the keys of a file to a tree, below its package."""
    for part in package.split(".") if package else ():
        tree = tree.setdefault(part, {})
    _add_keys(tree, source.root)


def _add_keys(tree: dict[str, Any], node: yaml.Node) -> None:
    for key, value in node.value:
        below = tree.get(str(key.value))
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            below = {} if below is None else below
            _add_keys(below, value)
        tree[str(key.value)] = below


def _mappings(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        yield node
        for _, value in node.value:
            yield from _mappings(value)
