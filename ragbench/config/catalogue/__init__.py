"""What can be configured: experiments, switches, parameters, data.

`conf/` says what exists and what differs; every other key and default comes from the class of a section
(`catalogue.fields`). Options of a group `x` stand in the folder `x/`, a file each, or together in `x.yaml`; switches
that are one stage, on or off, stand together in `switches.yaml`. Comments are read, too: those at the beginning of a
file or above an option describe it, one at the end of a line describes the key of that line. Nothing is composed and no
stage is imported, so that reading is fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml

from ragbench.base import locations
from ragbench.base.build import TARGET
from ragbench.base.errors import ConfigError
from ragbench.base.suggestions import did_you_mean
from ragbench.benchmark.loaders import ALL, LOADERS
from ragbench.config.catalogue.fields import filled, is_installed, stage_entries
from ragbench.config.catalogue.nodes import Leaf, Node, Parameter, below, overlaid, parameters, plain, targets
from ragbench.config.catalogue.source import Source, parse
from ragbench.config.catalogue.source import read as read_source

_SECTIONS, _MODES = "ragbench.config.sections", "ragbench.search.engine.modes"
Tree = Mapping[str, "Tree | None"]
_CLASS_OF = {
    "topics": "ragbench.extras.collect.topics.spec.DeriveSpec",
    "links": f"{_SECTIONS}.LinksSpec",
    "p2": f"{_SECTIONS}.Headings",
    "p4": f"{_SECTIONS}.FieldWeights",
    "p9": f"{_SECTIONS}.FieldWeights",
    "budget": "ragbench.evidence.policy.BudgetSpec",
    "statistics": "ragbench.evidence.policy.StatisticsSpec",
    "tune": "ragbench.extras.fit.tuning.space.TuneSpec",
    "execution": f"{_SECTIONS}.ExecutionSpec",
    "tracking": f"{_SECTIONS}.TrackingSpec",
    "paths": f"{_SECTIONS}.PathsSpec",
    "cache": f"{_SECTIONS}.CacheSpec",
    "index.lexical": "ragbench.index.lexical.LexicalSpec",
    "index.passage": "ragbench.index.texts.PassageTemplate",
    "index.dense": "ragbench.index.dense.DenseSpec",
    "index.vocabulary": "ragbench.index.vocabulary.VocabularySpec",
    "index.encoder": "ragbench.models.resolve.EncoderSpec",
    "latency": "ragbench.evaluation.latency.LatencySpec",
    **{f"modes.{mode}": f"{_MODES}.ModeSpec" for mode in ("keyword", "semantic", "hybrid", "rerank")},
}
SPECS = {section: target for section, target in _CLASS_OF.items() if is_installed(target)}
"""Sections of the configuration without `_target_`, and the class that each becomes."""
CLASSES = {
    **{section: target for section, target in _CLASS_OF.items() if section != "topics"},
    "": f"{_SECTIONS}.Basics",
    "topics.kind=derived": _CLASS_OF["topics"],
    "data": "ragbench.benchmark.load.DataSpec",
    **{f"data.loader={kind}": loader for kind, loader in LOADERS.items()},
}
"""What gives a section its keys and defaults; some sections have those of their kind."""

_FITTED = ("calibration", "ranker")
"""Groups to which a project can add options: what `ragbench fit --write` writes."""
_NO_SWITCHES = ("data", "exp", "tune")
_TEXT = "tag:yaml.org,2002:str"
_CONFIG, _SWITCHES = "config.yaml", "switches.yaml"
_ON, _OFF = "on", "off"


@dataclass(frozen=True)
class Option:
    """One choice of a group, `group=name`, with every key that it has; `package` is the key above them."""

    name: str
    description: str
    package: str
    node: Node

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters."""
        return tuple(parameters(self.node, self.package))

    @property
    def targets(self) -> tuple[str, ...]:
        """The classes that it builds."""
        return tuple(targets(self.node))

    @property
    def content(self) -> dict[str, Any]:
        """Its values, with interpolations unresolved."""
        return plain(self.node)


@dataclass(frozen=True)
class Group:
    """A group of options and the one that is taken when none is named."""

    name: str
    default: str
    options: tuple[Option, ...]

    @property
    def description(self) -> str:
        """The description of `on`, or of the default when the group has no `on`."""
        return next((option for option in self.options if option.name == _ON), self.options[0]).description

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of all options but `off`, each key once."""
        by_key: dict[str, Parameter] = {}
        for option in self.options:
            for parameter in option.parameters if option.name != _OFF else ():
                by_key.setdefault(parameter.key, parameter)
        return tuple(by_key.values())


@dataclass(frozen=True)
class Experiment:
    """A preset, chosen with `exp=name`: the options it chooses by group, and the values it sets.

    Both include those of the experiments that its `defaults` name.
    """

    name: str
    description: str
    choices: Mapping[str, str]
    node: Node = field(default_factory=dict)

    @property
    def values(self) -> dict[str, str]:
        """By key the values it sets, as text."""
        return {parameter.key: parameter.default for parameter in parameters(self.node) if parameter.key != "name"}

    @property
    def content(self) -> dict[str, Any]:
        """The values it sets, with interpolations unresolved."""
        return plain(self.node)

    @property
    def overrides(self) -> tuple[str, ...]:
        """The overrides that have the same effect."""
        return tuple(f"{key}={value}" for key, value in {**self.choices, **self.values}.items())


@dataclass(frozen=True)
class Catalogue:
    """All of the configuration in `folder`; `version` has path, time of change and size of every file.

    `fitted` is the folder of what was fitted in a project.
    """

    folder: Path
    version: tuple[tuple[str, int, int], ...] = ()
    fitted: Path | None = None

    @cached_property
    def experiments(self) -> tuple[Experiment, ...]:
        """Every preset by name."""
        experiments = map(self.experiment, self.choices["exp"])
        return tuple(
            experiment for experiment in experiments if all(o in self.choices[g] for g, o in experiment.choices.items())
        )

    @cached_property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """By group, the names of its options."""
        choices = {"exp": {path.stem for path in self.folder.glob("exp/*.yaml")}}
        for group, options in self._declared.items():
            choices[group] = {name for name, option in options.items() if self._is_there(group, option)}
            default = self._listed.get(group)
            if _ON in options or (isinstance(default, yaml.ScalarNode) and default.value == _OFF):
                choices[group].add(_OFF)
        return {group: tuple(sorted(names)) for group, names in sorted(choices.items())}

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """The stages that `order` may name although their classes, which belong to extras, are not installed."""
        return tuple(group for group, options in self._together.items() if set(options) - set(self.choices[group]))

    def _is_there(self, group: str, option: Source) -> bool:
        """Whether the class of an option is installed: an extra may be missing, and then its options are."""
        node = option.node
        if group != "data":
            return all(map(is_installed, targets(node)))
        loader = node.get("loader")
        if isinstance(loader, Leaf) and str(loader.value) in ALL and str(loader.value) not in LOADERS:
            return False
        begins = [self._declared[group].get(str(begin.value)) for begin in option.defaults]
        return all(self._is_there(group, begin) for begin in begins if begin is not None)

    @cached_property
    def defaults(self) -> Mapping[str, str]:
        """By group, the option that is taken when none is named: `off` for a switch that config.yaml does not name."""
        defaults = {}
        for group, chosen in self._listed.items():
            if not isinstance(chosen, yaml.SequenceNode):
                defaults[group] = self._checked_default(group, chosen)
        return {**defaults, **{group: _OFF for group in self._of_switches if group not in defaults}}

    @cached_property
    def search_space_choice(self) -> tuple[str, ...]:
        """The search spaces of `ragbench tune` when none is named; none where it is not installed."""
        chosen = self._listed.get("tune") if "tune" in SPECS else None
        return tuple(str(leaf.value) for leaf in chosen.value) if isinstance(chosen, yaml.SequenceNode) else ()

    @cached_property
    def tree(self) -> Tree:
        """Every key that can be set, as nested mappings; None for a value, even if the value is a `{}` mapping."""
        tree: dict[str, Any] = {}
        _add(tree, self.base)
        for group in self.defaults:
            for name in self.choices[group]:
                option = self.option(group, name)
                _add(tree, below(option.package, option.node))
        return tree

    @cached_property
    def base(self) -> Node:
        """config.yaml with every key of its sections."""
        values = read_source(self.folder / _CONFIG).node
        sections: Node = {}
        for section in SPECS:
            if section.split(".")[0] not in self.defaults:
                sections = overlaid(sections, below(section, {}))
        self._check_sections(values, "")
        node = filled(overlaid(sections, values), "", CLASSES)
        order = node.get("order")
        if not (isinstance(order, Leaf) and isinstance(order.value, list)):
            return node
        names = _with_stages(list(order.value))
        return {**node, "order": Leaf(names, f"[{', '.join(names)}]", order.comment)}

    def _check_sections(self, node: Node, path: str) -> None:
        """Raise ConfigError for a section of config.yaml without a class, which would have no effect."""
        packages = {self.option(group, name).package for group, name in self.defaults.items()}
        known = {*_CLASS_OF, *packages}
        for key, value in node.items():
            full_key = f"{path}.{key}".lstrip(".")
            if (
                full_key in known
                or (isinstance(value, Mapping) and TARGET in value)
                or (isinstance(value, Leaf) and not path)
            ):
                continue
            if isinstance(value, Leaf) or not any(section.startswith(f"{full_key}.") for section in known):
                raise ConfigError(
                    f"{self.folder / _CONFIG}: {full_key} is unknown{did_you_mean(full_key, known, 'sections')}"
                )
            self._check_sections(value, full_key)

    def option(self, group: str, name: str) -> Option:
        """An option with every key of its classes; those of the options that its `defaults` name count, too."""
        if (group, name) not in self._options:
            self._options[group, name] = self._read_option(group, name)
        return self._options[group, name]

    def declaration(self, group: str) -> Path:
        """The file or folder that declares a group."""
        path = next(iter(self._declared[group].values())).path
        return path if path.parent == self.folder else path.parent

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every group in the order of the defaults list."""
        return tuple(self._group(name, default) for name, default in self.defaults.items())

    @property
    def switches(self) -> tuple[Group, ...]:
        """The groups that change the pipeline or the index."""
        return tuple(group for group in self.groups if group.name not in _NO_SWITCHES)

    @property
    def data(self) -> Group:
        """The kinds of collection."""
        return next(group for group in self.groups if group.name == "data")

    @cached_property
    def targets(self) -> frozenset[str]:
        """The classes that config.yaml and the options name."""
        of_groups = {target for group in self.groups for option in group.options for target in option.targets}
        return frozenset({*targets(self.base), *of_groups})

    @cached_property
    def settings(self) -> tuple[Parameter, ...]:
        """The parameters of no group."""
        return tuple(parameters(self.base))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every parameter: those of config.yaml, of the data, of the switches."""
        return (*self.settings, *(parameter for group in self.groups for parameter in group.parameters))

    @cached_property
    def _options(self) -> dict[tuple[str, str], Option]:
        return {}

    @cached_property
    def _listed(self) -> Mapping[str, yaml.Node]:
        """By group, what the defaults list of config.yaml says."""
        source = read_source(self.folder / _CONFIG)
        by_group = {}
        for item in source.defaults:
            if isinstance(item, yaml.MappingNode) and len(item.value) == 1:
                ((name, chosen),) = item.value
                by_group[str(name.value)] = chosen
            elif not (isinstance(item, yaml.ScalarNode) and item.value == "_self_"):
                raise ConfigError(f'{source.location(item)} must be an entry such as `- p6: "off"`')
        return by_group

    def _listed_comment(self, group: str) -> str:
        """The comment after a group in the defaults list, as a sentence."""
        listed = self._listed.get(group)
        comment = read_source(self.folder / _CONFIG).comment(listed) if listed is not None else ""
        return f"{comment[:1].upper()}{comment[1:]}." if comment else ""

    def _checked_default(self, group: str, chosen: yaml.Node) -> str:
        location = f"{self.folder / _CONFIG}:{chosen.start_mark.line + 1}:"
        options = self.choices.get(group)
        if options is None:
            hint = did_you_mean(group, self.choices)
            raise ConfigError(f"{location} names '{group}', which is not a folder{hint}")
        if chosen.tag != _TEXT or chosen.value not in options:
            hint = ", in quotes" if chosen.value in options else did_you_mean(str(chosen.value), options)
            raise ConfigError(f"{location} {group} cannot be {chosen.value or 'empty'}{hint}")
        return str(chosen.value)

    @cached_property
    def _of_switches(self) -> Mapping[str, Source]:
        """The option `on` of every switch: those of switches.yaml, then those that the classes of stages make."""
        declared = self._options_in(_SWITCHES)
        entries = [entry for entry in stage_entries() if entry.switch not in declared]
        text = "".join(f"# {entry.description}\n{entry.switch}:\n  _target_: {entry.target}\n" for entry in entries)
        return {**declared, **(parse(self.folder / _SWITCHES, text).options if entries else {})}

    @cached_property
    def _together(self) -> Mapping[str, Mapping[str, Source]]:
        """By group, the options that are in a file with others."""
        options = {group: {_ON: option} for group, option in self._of_switches.items()}
        gathered = {group: self._options_in(f"{group}.yaml") for group in self._listed}
        return {**options, **{group: options for group, options in gathered.items() if options}}

    def _options_in(self, name: str) -> Mapping[str, Source]:
        file = self.folder / name
        return read_source(file).options if file.is_file() else {}

    @cached_property
    def _declared(self) -> Mapping[str, Mapping[str, Source]]:
        """By group, its options as files have them; a file of its own wins. Presets are read one by one."""
        declared = {group: dict(options) for group, options in self._together.items()}
        for path in self.folder.glob("*/*.yaml"):
            if path.parent.name != "exp":
                declared.setdefault(path.parent.name, {})[path.stem] = read_source(path)
        for path in _fitted_files(self.fitted):
            options = declared.setdefault(path.parent.name, {})
            if path.stem not in options:
                options[path.stem] = self._checked_fitted(read_source(path), path.parent.name)
        return declared

    def _checked_fitted(self, option: Source, group: str) -> Source:
        """An option of a project. Raises ConfigError for classes other than those of the group: making one runs it."""
        files = (self.folder / group).glob("*.yaml")
        shipped = {target for path in files for target in targets(read_source(path).node)}
        if unknown := [target for target in targets(option.node) if target not in shipped]:
            allowed = ", ".join(sorted(shipped))
            raise ConfigError(f"{option.path} has the class {unknown[0]}: ragbench fit writes only {allowed}")
        return option

    def _read_option(self, group: str, name: str, above: tuple[str, ...] = ()) -> Option:
        declared = self._declared[group].get(name)
        if declared is None:
            # Off: no stage, and the sections of a class as the class has them.
            node: Node = {key: Leaf(None, "null") for key in self._stages_inside(group)}
            return Option(name, self._listed_comment(group) or "Off.", group, filled(node, group, CLASSES))
        package, node = declared.package or group, declared.node
        for parent in _parents(declared, self.choices[group], (*above, name)):
            node = overlaid(self._read_option(group, parent, (*above, name)).node, node)
        return Option(name, declared.description, package, filled(node, package, CLASSES))

    def _stages_inside(self, group: str) -> list[str]:
        """The stages of a group that holds several, such as `limit` of p8."""
        if _ON not in self.choices[group]:
            return []
        node = self.option(group, _ON).node
        return [key for key, value in node.items() if isinstance(value, Mapping) and TARGET not in node]

    def _group(self, name: str, default: str) -> Group:
        order = {default: 0, _ON: 1}
        names = sorted(self.choices[name], key=lambda option: (order.get(option, 2), option))
        return Group(name, default, tuple(self.option(name, option) for option in names))

    def experiment(self, name: str, above: tuple[str, ...] = ()) -> Experiment:
        """The preset of this name; `above` are those that extend it. Raises ConfigError for an unreadable file."""
        source = read_source(self.folder / "exp" / f"{name}.yaml")
        if "@package _global_" not in source.header:
            raise ConfigError(f"{source.path} must begin with the line `# @package _global_`")
        choices: dict[str, str] = {}
        node: Node = {}
        for parent in _parents(source, self.choices["exp"], (*above, name)):
            inherited = self.experiment(parent, (*above, name))
            choices, node = {**choices, **inherited.choices}, overlaid(node, inherited.node)
        chosen = dict(_choice(source, item) for item in source.defaults if not isinstance(item, yaml.ScalarNode))
        node = {key: value for key, value in node.items() if chosen.get(key) != _OFF}  # without effect now
        return Experiment(name, source.description, {**choices, **chosen}, overlaid(node, source.node))


def read(folder: Path | None = None) -> Catalogue:
    """The catalogue of a configuration folder (default: the installed one). Raises ConfigError without config.yaml."""
    folder = folder or locations.configuration()
    if not (folder / _CONFIG).is_file():
        raise ConfigError(f"the configuration folder {folder} has no config.yaml: install ragbench again")
    fitted_folder = locations.fitted() if folder == locations.configuration() else folder
    fitted = fitted_folder if fitted_folder != folder else None
    files = sorted([*folder.glob("*.yaml"), *folder.glob("*/*.yaml"), *_fitted_files(fitted)])
    stats = [(path, path.stat()) for path in files]
    return _catalogue(folder, tuple((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in stats), fitted)


_catalogue = lru_cache(maxsize=4)(Catalogue)


def _fitted_files(fitted: Path | None) -> list[Path]:
    return [path for group in _FITTED for path in (fitted / group).glob("*.yaml")] if fitted else []


def _with_stages(order: list[str]) -> list[str]:
    """The order with the stages that name their own place. Raises ConfigError for an unknown neighbour."""
    for entry in stage_entries():
        if entry.switch in order:
            continue
        if entry.neighbour not in order:
            hint = did_you_mean(entry.neighbour, order, "entries")
            raise ConfigError(f"the place of {entry.target}: '{entry.neighbour}' is not an entry of order{hint}")
        order.insert(order.index(entry.neighbour) + (entry.side == "after"), entry.switch)
    return order


def _parents(declared: Source, options: Sequence[str], ancestors: tuple[str, ...]) -> Iterator[str]:
    """The options of the same group that a declaration extends; `ancestors` are itself and those that extend it."""
    for item in declared.defaults:
        if not isinstance(item, yaml.ScalarNode) or item.value == "_self_":
            continue
        if item.value not in options:
            hint = did_you_mean(str(item.value), options)
            raise ConfigError(f"{declared.location(item)} begins with '{item.value}', which does not exist{hint}")
        if item.value in ancestors:
            raise ConfigError(f"{declared.location(item)} begins with '{item.value}', which begins with this one")
        yield str(item.value)


def _choice(source: Source, item: yaml.Node) -> tuple[str, str]:
    """Group and option of an entry of an experiment's defaults."""
    if isinstance(item, yaml.MappingNode) and len(item.value) == 1:
        ((name, chosen),) = item.value
        words = str(name.value).split()
        if words[:1] == ["override"] and len(words) == 2 and chosen.tag == _TEXT:
            return words[1].lstrip("/"), str(chosen.value)
    raise ConfigError(
        f'{source.path}: each of its defaults must be an entry such as `override /p6: "on"`, with the quotes, '
        "or the name of another experiment"
    )


def _add(tree: dict[str, Any], node: Node) -> None:
    """Add the keys of a node to a tree; a key that is a mapping anywhere has keys."""
    for key, value in node.items():
        if isinstance(value, Leaf):
            tree.setdefault(key, None)
        else:
            tree[key] = tree.get(key) or {}
            _add(tree[key], value)
