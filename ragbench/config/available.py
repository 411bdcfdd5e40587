"""What can be configured: presets, switches, data, and every key with its default and its comment.

The options and their keys are what Hydra composes of `conf/` and of the classes (`ragbench.config.store`); the comments
are read from the source of the classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import yaml

from ragbench.base import options
from ragbench.base.options import OFF, ON, flat
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config import hydra_api, store
from ragbench.config.comments import comment_above, comments_of
from ragbench.config.hydra_api import Folders
from ragbench.config.names import EXPERIMENT

if TYPE_CHECKING:
    from omegaconf import DictConfig

_SPACES = "tune"
_LONGEST_DEFAULT = 160  # characters of a default that are shown in full


@dataclass(frozen=True)
class Parameter:
    """A key that can be overridden, such as `p6.depth`, its default as in a file, and what it means."""

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
class ComposedOption:
    """One option of a group, `group=name`: a node of values below its `package`."""

    name: str
    description: str
    package: str
    node: DictConfig

    @cached_property
    def content(self) -> Mapping[str, Any]:
        """Its values, with interpolations unresolved."""
        return plain(self.node)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every key of it, with default and comment."""
        return tuple(parameters(self.node, self.package))


@dataclass(frozen=True)
class Group:
    """A group of options and the one that is taken when none is named."""

    name: str
    default: str
    options: tuple[ComposedOption, ...]

    @property
    def description(self) -> str:
        """The description of `on`, or of the first option when the group has no `on`."""
        return next((option for option in self.options if option.name == ON), self.options[0]).description

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of all options but `off`, each key once."""
        by_key: dict[str, Parameter] = {}
        for option in (option for option in self.options if option.name != OFF):
            for parameter in option.parameters:
                by_key.setdefault(parameter.key, parameter)
        return tuple(by_key.values())


@dataclass(frozen=True)
class Preset:
    """A preset, chosen with `exp=name`: the options it chooses by group, and the values it sets, as text by key."""

    name: str
    description: str
    options: Mapping[str, str]
    values: Mapping[str, str]

    @property
    def overrides(self) -> tuple[str, ...]:
        """The overrides that have the same effect."""
        return tuple(f"{key}={value}" for key, value in {**self.options, **self.values}.items())


@dataclass(frozen=True)
class Available:
    """All that can be configured by files and classes."""

    folders: Folders

    @property
    def by_group(self) -> Mapping[str, tuple[str, ...]]:
        """By group, the names of its options."""
        return self.folders.groups

    @cached_property
    def defaults(self) -> Mapping[str, str]:
        """By group, the option that is taken when none is named."""
        listed = {group: name for group, name in self._listed.items() if group in self.by_group and group != _SPACES}
        return {**listed, **dict.fromkeys(self.added, OFF)}

    @cached_property
    def added(self) -> tuple[str, ...]:
        """The switches that config.yaml does not name, of classes outside ragbench."""
        named = (*self._listed, EXPERIMENT, _SPACES)
        return tuple(group for group, names in self.by_group.items() if ON in names and group not in named)

    @cached_property
    def _listed(self) -> Mapping[str, str]:
        """The defaults list of config.yaml: by group, the option that it chooses."""
        entries = [entry for entry in self._file.get("defaults") or [] if isinstance(entry, dict)]
        return {
            str(group).removeprefix("optional "): OFF if name is None else str(name)
            for entry in entries
            for group, name in entry.items()
        }

    @cached_property
    def names(self) -> frozenset[str]:
        """The first parts of all keys."""
        of_sections = {key.split(".")[0] for key in options.sections()}
        fields = {field.name for field in dataclasses.fields(options.sections()[""])}
        placed = {group.partition("@")[2] for group in self._listed if "@" in group}
        return frozenset({*of_sections, *fields, *placed, *self._file, *self.by_group} - {"", "defaults", EXPERIMENT})

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The stages that config.yaml orders, also those of extras that are not installed."""
        return tuple(map(str, self._file.get("order") or ()))

    @cached_property
    def _file(self) -> Mapping[str, Any]:
        content = read_yaml_file(self.folders.paths[0] / "config.yaml")
        return content if isinstance(content, dict) else {}

    @cached_property
    def base(self) -> DictConfig:
        """The configuration without any words, not resolved."""
        return self.folders.compose()[0]

    def option(self, group: str, name: str) -> ComposedOption:
        """An option with every key."""
        return _option(group, name, self.folders)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every group in the order of the defaults list."""
        return tuple(self._group(name, default) for name, default in self.defaults.items())

    def _group(self, name: str, default: str) -> Group:
        order = {default: 0, ON: 1}
        names = sorted(self.by_group[name], key=lambda option: (order.get(option, 2), option))
        return Group(name, default, tuple(self.option(name, option) for option in names))

    @property
    def switches(self) -> tuple[Group, ...]:
        """The groups that change the pipeline or the index."""
        return tuple(group for group in self.groups if group.name != "data")

    @property
    def data(self) -> Group:
        """The kinds of collection."""
        return next(group for group in self.groups if group.name == "data")

    @cached_property
    def settings(self) -> tuple[Parameter, ...]:
        """The parameters of no group."""
        return tuple(parameter for parameter in parameters(self.base) if not self._is_of_group(parameter.key))

    def _is_of_group(self, key: str) -> bool:
        return f"{key}.".startswith(self._packages)

    @cached_property
    def _packages(self) -> tuple[str, ...]:
        """The beginnings of the keys that hold the values of the groups."""
        return tuple(f"{package_of(group)}." for group in self.defaults)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every parameter: those of no group, then those of the groups."""
        return (*self.settings, *(parameter for group in self.groups for parameter in group.parameters))

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """By key the default, of an option that has the key where the default option has not; without comments."""
        by_key = {key: value for key, value in flat(plain(self.base)).items() if not self._is_of_group(key)}
        for option in (option for group in self.groups for option in group.options if option.name != OFF):
            for inner, value in flat(option.content).items():
                key = f"{option.package}.{inner}"
                if not any(key.startswith(f"{known}.") for known in by_key):  # inside a mapping that is a value
                    by_key.setdefault(key, value)
        return {key: value for key, value in by_key.items() if not key.rpartition(".")[2].startswith("_")}

    @cached_property
    def presets(self) -> tuple[Preset, ...]:
        """Every preset by name."""
        return tuple(map(self.preset, self.by_group[EXPERIMENT]))

    def preset(self, name: str) -> Preset:
        """A preset: the options in which it differs from none, and the values that it sets."""
        chosen, values = self.folders.preset(name)
        different = {
            group: chosen[group] for group, default in self.defaults.items() if chosen.get(group, default) != default
        }
        values.pop("name", None)
        file = self.folders.file(EXPERIMENT, name)
        texts = {key: text_of(value) for key, value in _leaves(values, plain(self.base))}
        return Preset(name, comment_above(file) if file else "", different, texts)

    def node(self, key: str) -> bool:
        """Whether a key holds further keys, and is not a value."""
        return key in self._nodes

    @cached_property
    def _nodes(self) -> frozenset[str]:
        of_options = ((option.node, option.package) for group in self.groups for option in group.options)
        return frozenset(key for node, path in ((self.base, ""), *of_options) for key in _node_keys(node, path))


def _leaves(values: Mapping[str, Any], below: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The values by key; a mapping as a whole where the configuration has none."""
    for key, value in values.items():
        inside = below.get(key)
        if isinstance(value, Mapping) and isinstance(inside, Mapping):
            yield from _leaves(value, inside, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def read() -> Available:
    """What can be configured now. Raises ConfigError for files that cannot be composed."""
    return _available(hydra_api.read())


_available = lru_cache(maxsize=4)(Available)


@lru_cache(maxsize=1024)
def _option(group: str, name: str, folders: Folders) -> ComposedOption:
    from omegaconf import OmegaConf

    file, package = folders.file(group, name), package_of(group)
    if file is None:
        node = OmegaConf.create(store.node(group, name))
    else:
        sign = "" if group in folders.compose()[1] else "+"
        composed, _ = folders.compose([f"{sign}{group}={name}"])
        node = OmegaConf.select(composed, package) or OmegaConf.create({})
    declared = [option for option in options.options() if (option.group, option.name) == (group, name)]
    abouts = (option.summary for option in sorted(declared, key=lambda option: not option.about))
    about = comment_above(file) if file else next(abouts, "Off.")
    return ComposedOption(name, about, package, node)


def package_of(group: str) -> str:
    """The key that holds the values of the options of a group: `index.chunking` for `chunking`."""
    return next((option.package for option in options.options() if option.group == group), group)


def plain(node: DictConfig) -> dict[str, Any]:
    """The values of a node, with interpolations unresolved."""
    from omegaconf import OmegaConf

    made = OmegaConf.to_container(node, resolve=False)
    assert isinstance(made, dict)
    return {str(key): value for key, value in made.items()}


def parameters(node: DictConfig, path: str = "") -> Iterator[Parameter]:
    """A parameter for each value of a node below the key `path`; keys such as `_target_` give none."""
    from omegaconf import OmegaConf

    sources = store.sources_of(OmegaConf.get_type(node)) if path else (options.sections()[""],)
    comments = {key: text for source in sources for key, text in comments_of(source).items()}
    for key in map(str, node):
        child: Any = node._get_node(key)
        full_key = f"{path}.{key}".lstrip(".")
        if _is_node(child):
            yield from parameters(child, full_key)
        elif not (key.startswith("_") and key.endswith("_")):
            value = OmegaConf.to_container(child, resolve=False) if OmegaConf.is_config(child) else child._value()
            yield Parameter(full_key, text_of(value), comments.get(key, ""))


def _is_node(child: Any) -> bool:
    """Whether a value has keys of its own: those of a class, or of several; other mappings are values."""
    from omegaconf import DictConfig, OmegaConf

    if not isinstance(child, DictConfig) or child._is_none() or child._is_missing() or child._is_interpolation():
        return False
    return OmegaConf.get_type(child) not in (dict, None) or any(_is_node(child._get_node(key)) for key in child)


def _node_keys(node: DictConfig, path: str) -> Iterator[str]:
    """The keys of a node, and of the nodes in it, that hold keys."""
    yield path
    for key in map(str, node):
        child: Any = node._get_node(key)
        if _is_node(child):
            yield from _node_keys(child, f"{path}.{key}".lstrip("."))


def text_of(value: Any) -> str:
    """A plain value as a file has it, in one line: `{content: 1.0}`."""
    style = '"' if isinstance(value, str) and "\n" in value else None
    text = str(
        yaml.safe_dump(
            value, default_style=style, default_flow_style=True, width=2**20, allow_unicode=True, sort_keys=False
        )
    )
    return text.strip().removesuffix("...").strip()
