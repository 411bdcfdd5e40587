"""Compose configurations: what the catalogue declares, with words in Hydra's grammar on top, resolved by OmegaConf.

No other module imports Hydra or OmegaConf, and none of their messages are shown. One process composes every arm of a
sweep, so that arms can share work and be timed side by side.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from ragbench.base import extensions
from ragbench.base.bounds import Refused, shown
from ragbench.base.build import SOURCES, TARGET, build, value_at
from ragbench.base.console import short_path
from ragbench.base.errors import ConfigError
from ragbench.base.suggestions import did_you_mean, nearest
from ragbench.benchmark import load
from ragbench.boundary.permissions import trusting
from ragbench.config import catalogue, project
from ragbench.config.catalogue import SPECS, Catalogue, Experiment, Tree
from ragbench.config.catalogue.names import numbered
from ragbench.config.catalogue.nodes import below, merged, plain
from ragbench.config.differences import flat
from ragbench.config.function_stage import insert, node_of
from ragbench.config.overrides import (
    EXPERIMENT,
    canonical,
    check_choice,
    from_environment,
    key_of,
    section_of,
    why_not_plain,
)
from ragbench.config.registry import class_named, make
from ragbench.config.sections import Basics
from ragbench.config.settings import Settings
from ragbench.config.trust import beyond_plain

# Keys that say where and how to measure, not what; they are left out of an arm's name.
_MEASUREMENT_KEYS = {
    *("data", "topics", "split", "seed", "measures", "primary", "latency", "statistics", "budget", "tune"),
    *("allow_unjudged", "tracking", "paths", "cache", "execution", "modes"),
}
_STANDARD = {name: (f"exp={name}",) for name in ("baseline", "recommended")}
"""The arms of a run that names none."""
_MOST_ARMS = 1024

_Inspect = Callable[[Settings], object]
"""Looks at composed settings, and raises ConfigError for those it refuses."""


def _accept(settings: Settings) -> None:
    """Refuse nothing."""


def compose(overrides: Sequence[str], *, inspect: _Inspect = _accept, typed: Sequence[str] | None = None) -> Settings:
    """The settings for overrides, checked.

    `inspect` sees them before any model or folder that they name is looked for, and may refuse them. `typed` are those
    of the overrides that the user wrote (default: all); the others come from the project file.
    """
    known = catalogue.read()
    all_overrides = _with_project_overrides(overrides, known)
    for override in all_overrides:
        if _parse(override).is_sweep_override():
            typed_word = override.removeprefix("+")  # of `+exp`, which `canonical` writes for `exp`
            raise ConfigError(f"'{typed_word}' has several values: add -m for an arm of each, or put them in [ ]")
    trusted = _inspect_project(canonical(overrides if typed is None else typed, known), all_overrides, known)
    return _compose_settings(all_overrides, set(), known, lambda settings: (trusted(settings), inspect(settings)))


def compose_alone(overrides: Sequence[str]) -> Settings:
    """The settings for words without those of a project file."""
    known = catalogue.read()
    return _compose_settings(canonical(overrides, known), set(), known)


def sweep(overrides: Sequence[str]) -> list[Settings]:
    """The settings for every combination of `key=a,b`, in order, checked; no two have the same name."""
    known = catalogue.read()
    all_overrides = _with_project_overrides(overrides, known)
    trusted = _inspect_project(canonical(overrides, known), all_overrides, known)
    swept = {key_of(override): _swept(override) for override in all_overrides}
    _check_count(math.prod(map(len, swept.values())))
    varying = {key for key, several in swept.items() if len(set(several)) > 1}
    settings = [_compose_settings(batch, varying, known, trusted) for batch in itertools.product(*swept.values())]
    names = [arm.name for arm in settings]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated:
        raise ConfigError(f"two arms would be called '{repeated}': give them different names with name=...")
    return settings


def measurement_overrides(overrides: Iterable[str]) -> list[str]:
    """The overrides for how and where to measure, without those of the search."""
    return [override for override in overrides if section_of(override) in _MEASUREMENT_KEYS]


def without_measurement(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a configuration says about the search, without where and how to measure."""
    return {key: value for key, value in config.items() if key not in _MEASUREMENT_KEYS}


def arms(named: Mapping[str, Sequence[str]], shared: Sequence[str] = (), *, of_project: bool = False) -> list[Settings]:
    """The settings of arms by name, each made of the shared overrides and its own; its own win.

    `of_project`: the overrides of the arms are those of the project file.
    """
    arms_settings = []
    for name, overrides in named.items():
        try:
            settings = compose([*shared, *overrides], typed=shared if of_project else None)
        except ConfigError as error:
            raise ConfigError(f"{error} (arm '{name}')") from None
        arms_settings.append(Settings(name, {**settings.config, "name": name}, settings.overrides))
    return arms_settings


def project_overrides() -> list[str]:
    """The words of the project file, with which every command in the folder begins; none without a project."""
    return _with_project_overrides((), catalogue.read())


def standard_arms(overrides: Sequence[str]) -> list[Settings] | None:
    """The arms of the project, else baseline and recommended; None when an override changes the pipeline."""
    if len(measurement_overrides(overrides)) < len(overrides):
        return None
    project_file = project.find()
    if project_file and project_file.arms:
        return arms(project_file.arms, overrides, of_project=True)
    return arms(_STANDARD, overrides)


def _with_project_overrides(overrides: Sequence[str], known: Catalogue) -> list[str]:
    """The words of the project, where there is one, and the overrides."""
    typed = canonical(overrides, known)
    project_file = project.find()
    if project_file is None:
        return typed
    try:
        return canonical(project_file.overrides(typed, known), known)
    except ConfigError as error:
        raise ConfigError(f"{error} (with the words of {short_path(project_file.file)})") from None


def _inspect_project(typed: Sequence[str], overrides: Sequence[str], known: Catalogue) -> _Inspect:
    """Return a function that refuses what the project file would send or start, beyond what was typed."""
    project_file = project.find()
    if project_file is None or trusting():
        return _accept
    typed = [override for override in typed if override in overrides]  # not the name of an arm of the project file
    file = short_path(project_file.file)
    ask = f"read {file}, then add --trust if you agree"
    for override in overrides:
        if override not in typed and (reason := why_not_plain(override)):
            raise ConfigError(f"{file} has '{override[:60]}', which {reason}: {ask}")

    def inspect(settings: Settings) -> None:
        risky = beyond_plain(settings.config)
        own = beyond_plain(_compose_settings(typed, set(), known).config) if risky else {}
        for key, (effect, value) in risky.items():
            if own.get(key) != (effect, value):
                raise ConfigError(f"{file} sets {key}, which {effect} ({shown(value)}): {ask}")

    return inspect


def _compose_settings(
    overrides: Sequence[str], varying: set[str], known: Catalogue, inspect: _Inspect = _accept
) -> Settings:
    added = [override for override in overrides if _is_function_stage(key_of(override), known)]
    if added:
        remaining = [override for override in overrides if override not in added]
        settings = _with_function_stages(_compose_settings(remaining, varying, known, inspect), added)
        return replace(settings, name=_arm_name(settings.config, overrides, varying), overrides=tuple(overrides))
    overrides = from_environment(overrides, os.environ)
    chosen = _experiment(overrides, known)
    choices = {**known.defaults, **(chosen.choices if chosen else {})}
    spaces = known.search_space_choice
    for override in overrides:
        if key_of(override) in known.choices:
            value = _parse(override).value()
            check_choice(key_of(override), value, known)
            if key_of(override) in known.defaults:
                choices[key_of(override)] = value
            elif key_of(override) == "tune":
                spaces = tuple(value if isinstance(value, list) else [value])
    options = (*choices.items(), *(("tune", space) for space in spaces))
    config = _compose_config(overrides, options, chosen.name if chosen else None, known)
    for override in overrides:
        group, _, option = override.partition("=")
        if (
            option == "off"
            and chosen is not None
            and _sets_key_below(chosen.values, group)
            and not _sets_key_below(overrides, group)
        ):
            config[group] = known.option(group, option).content  # the experiment's values for it have no effect now
    settings = Settings(_arm_name(config, overrides, varying), config, tuple(overrides))
    try:
        _check(config, known, choices)
        inspect(settings)
        return settings.check()
    except Refused as refusal:
        raise ConfigError(f"{refusal}{_file_of_refused_value(str(refusal), overrides, chosen, known)}") from None


def _is_function_stage(key: str, known: Catalogue) -> bool:
    name = section_of(key)
    return name not in known.tree and name not in known.choices and extensions.find("stage", name) is not None


def _with_function_stages(settings: Settings, overrides: Sequence[str]) -> Settings:
    """The settings with a stage for each function that the words turn on, in the order of the words."""
    chosen: dict[str, dict[str, Any]] = {}
    off = set()
    for override in overrides:
        name, _, parameter = key_of(override).partition(".")
        value, values = _parse(override).value(), chosen.setdefault(name, {})
        if parameter:
            values[parameter] = value
        elif value == "off":
            off.add(name)
        elif value != "on":
            raise ConfigError(f"{name} cannot be {shown(value)}: the choices are on, off")
    for name in [name for name in chosen if name not in off]:
        cls = extensions.find("stage", name)
        settings = insert(settings, name, node_of(build(cls, chosen[name], name)), cls.position)
    return settings.check()


def _experiment(overrides: Sequence[str], known: Catalogue) -> Experiment | None:
    """The experiment that words name, its choices checked."""
    name = next((_parse(override).value() for override in overrides if key_of(override) == EXPERIMENT), None)
    if name is None:
        return None
    check_choice(EXPERIMENT, name, known)
    experiment, file = known.experiment(name), short_path(known.folder / EXPERIMENT / f"{name}.yaml")
    for group, option in experiment.choices.items():
        if group not in known.defaults:
            near = [numbered(group)] if numbered(group) in known.defaults else known.defaults
            raise ConfigError(f"{file} chooses '{group}', which is not a switch{did_you_mean(numbered(group), near)}")
        check_choice(group, option, known, f" (in {file})")
    for key, value in experiment.values.items():
        if value == "???" or section_of(key) == "hydra":
            raise ConfigError(f"{file} sets {key} to {value}, which is not a value: remove it")
    return experiment


def _compose_config(
    overrides: Sequence[str], options: tuple[tuple[str, str], ...], experiment: str | None, known: Catalogue
) -> Any:
    """The options of groups, the experiment and the words merged, everything resolved."""
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationResolutionError, MissingMandatoryValue, OmegaConfBaseException

    config = _merged(known, options, experiment)
    for override in overrides:
        if key_of(override) not in known.choices:
            config = merged(config, below(key_of(override), _parse(override).value()))
    try:
        return OmegaConf.to_container(OmegaConf.create(config), resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key or 'a key'} is ???: give it a value") from None
    except InterpolationResolutionError as error:
        for override in overrides:
            _check_mapping(override, known)
        raise ConfigError(f"{error.full_key or 'a key'} refers to a key that does not exist or to itself") from None
    except (OmegaConfBaseException, ValueError, TypeError, AttributeError):
        typed = " ".join(override.removeprefix("+") for override in overrides)
        raise ConfigError(f"'{typed}' cannot be composed: look for a key or a ${{}} that is not complete") from None


@lru_cache(maxsize=64)  # arms differ in values more often than in choices
def _merged(known: Catalogue, options: tuple[tuple[str, str], ...], experiment: str | None) -> dict[str, Any]:
    """What files and classes say for a choice of options: config.yaml over the options, the experiment over both."""
    config: dict[str, Any] = {}
    for group, name in options:
        option = known.option(group, name)
        config = merged(config, below(option.package, option.content))
    config = merged(config, plain(known.base))
    return config if experiment is None else merged(config, known.experiment(experiment).content)


def _check_mapping(override: str, known: Catalogue) -> None:
    """Raise ConfigError for a value instead of a mapping, to a key of which some other key refers."""
    key, _, value = override.partition("=")
    node = value_at(known.tree, key.split("."))
    if node and key not in known.choices and not value.startswith(("{", "$")):
        inside = ", ".join(key for key in node if not key.startswith("_"))
        raise ConfigError(f"{key} must be a mapping with {inside}, got {value[:60]}")


def _file_of_refused_value(message: str, overrides: Sequence[str], chosen: Experiment | None, known: Catalogue) -> str:
    """The file of a refused value, in parentheses; empty when the value was typed."""
    key = message.split()[0]
    if any(_overlap(key, key_of(override)) for override in overrides):
        return ""
    if chosen is not None and any(_overlap(key, chosen_key) for chosen_key in chosen.values):
        return f" (in {short_path(known.folder / EXPERIMENT / f'{chosen.name}.yaml')})"
    group = section_of(key)
    path = known.declaration(group) if group in known.choices else known.folder / "config.yaml"
    return f" (in {short_path(path)})"


def _sets_key_below(overrides: Iterable[str], group: str) -> bool:
    return any(key_of(override).startswith(f"{group}.") for override in overrides)


def _overlap(key: str, second: str) -> bool:
    return f"{key}.".startswith(f"{second}.") or f"{second}.".startswith(f"{key}.")


def _arm_name(config: Any, batch: Sequence[str], varying: set[str]) -> str:
    """The configured name (an experiment sets its own), then what varies over the sweep."""
    swept = varying - {EXPERIMENT, "name"}
    extra = [item.replace(r"\:", ":") for item in batch if key_of(item) in swept]  # Hydra escapes colons in a sweep
    name = config.get("name")
    if name:
        return " ".join([str(name), *extra])
    listed = [item.lstrip("+") for item in (extra or batch) if section_of(item) not in _MEASUREMENT_KEYS]
    return " ".join(listed) or "default"


def _swept(override: str) -> list[str]:
    """An override with each of its values. Raises ConfigError for values that cannot be listed, and for none."""
    parsed, typed = _parse(override), override.removeprefix("+")
    if not parsed.is_sweep_override():
        return [f"{parsed.get_key_element()}={parsed.get_value_element_as_str()}"]
    if not parsed.is_discrete_sweep():
        raise ConfigError(f"'{typed}' cannot be swept: list its values, as in {key_of(override)}=1,2,3")
    if parsed.is_range_sweep():
        numbers = parsed.value()
        _check_count(math.ceil(float(numbers.stop - (numbers.start or 0)) / float(numbers.step)))
    several = [f"{parsed.get_key_element()}={value}" for value in parsed.sweep_string_iterator()]
    if not several:
        raise ConfigError(f"'{typed}' matches no value: list its values, as in 1,2,3")
    return several


def _check_count(arms: int) -> None:
    """Raise ConfigError for a sweep of too many arms."""
    if arms > _MOST_ARMS:
        raise ConfigError(f"the sweep has {arms} arms, at most {_MOST_ARMS} are possible: vary fewer keys or values")


class _Options:
    """What the parser asks Hydra's loader of files: the options of a group."""

    def get_group_options(self, group_name: str, *others: object, **more: object) -> list[str]:
        return list(catalogue.read().choices.get(group_name, ()))


def _parse(override: str) -> Any:
    """A word as Hydra parses it; `*` stands for all choices of its group."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        (parsed,) = OverridesParser.create(config_loader=cast(Any, _Options())).parse_overrides([override])
        return parsed
    except (HydraException, ValueError):  # of Python: a number of 5000 digits
        key, _, value = override.lstrip("+").partition("=")
        raise ConfigError(
            f"{key} cannot be read from '{value[:60]}': close its brackets and quotes, "
            f"and quote a text that holds signs, as in {key}=\"'a, b'\""
        ) from None


def _check(config: Mapping[str, Any], known: Catalogue, choices: Mapping[str, str]) -> None:
    """Check the keys of a whole configuration, then the values of every section, before anything is built.

    Raise Refused, or another ConfigError, for the first error. The known keys are those of the configuration files
    (`Catalogue.tree`); the bounds of a value come from the dataclass that its section becomes.

    `choices` has the chosen option of every group: the keys of a switch that is off have no effect.
    """
    alone = {name: config[name] for name, subtree in known.tree.items() if subtree is None and name in config}
    basics = build(Basics, alone, "")
    if basics.primary is not None and basics.primary not in basics.measures:
        raise Refused("", "primary", f"must be one of measures, got {shown(basics.primary)}: add it to measures")
    added = _own_stages(config, known)
    _check_keys({key: node for key, node in config.items() if key not in added}, known.tree, "", known)
    for group, option in choices.items():
        _check_option(config.get(group), group, option, known)
    stages = (*_stage_keys(known.tree), *added, SOURCES, *known.absent)
    for entry in basics.order:
        _check_entry("", "order", entry, stages)
    if TARGET not in (value_at(config, ("index", "chunking")) or {}):
        raise Refused("index", "chunking", f"must name a class in {TARGET}")
    for section, target in SPECS.items():
        node = value_at(config, section.split("."))
        if node is None:
            raise Refused("", section, "is missing")
        if section != "data":  # which a loader builds
            build(class_named(target, section), node, section)
    for mode, node in config["modes"].items():
        for entry in node.get("without", ()):
            _check_entry(f"modes.{mode}", "without", entry, stages)
    load.check(config["data"])
    for path, node in _nodes_with_class(config, ""):
        make(node, path)


def _check_option(node: Any, group: str, option: str, known: Catalogue) -> None:
    """Raise Refused for a key that the option of a group does not have, or that has no effect because it is off."""
    if not isinstance(node, Mapping) or TARGET in node or group == "data":
        return  # a class or a loader knows its keys
    content = known.option(group, option).content
    for leaf in flat(node):
        path = leaf.split(".")
        key = next((path[:n] for n in range(1, len(path)) if value_at(known.tree[group], path[:n]) is None), path)
        if not _has_key(content, key) or (option == "off" and value_at(node, path) != value_at(content, path)):
            owners = [
                option
                for option in known.choices[group]
                if option != "off" and _has_key(known.option(group, option).content, key)
            ]
            remedy = f": add {' or '.join(f'{group}={option}' for option in owners)}" if owners else ""
            raise Refused(group, leaf, f"cannot be set with {group}={option}{remedy}")


def _has_key(node: Any, path: Sequence[str]) -> bool:
    return isinstance(node, Mapping) and path[0] in node and (len(path) == 1 or _has_key(node[path[0]], path[1:]))


def _check_keys(node: Mapping[str, Any], tree: Tree, path: str, known: Catalogue) -> None:
    for key in node:
        if key not in tree:
            raise Refused(path, str(key), _unknown_key(str(key), path, tree, known))
    for key, subtree in tree.items():
        if subtree is None:
            continue
        full_key, value = f"{path}.{key}".lstrip("."), node.get(key)
        if isinstance(value, Mapping):
            if full_key not in SPECS and full_key != "data" and TARGET not in value:
                _check_keys(value, subtree, full_key, known)
                if TARGET in subtree and value and full_key not in known.choices:
                    raise Refused(full_key, next(iter(flat(value))), f"has no effect: {full_key} is off")
        elif (key in node or not path) and (value is not None or full_key not in _stage_keys(known.tree)):
            inside = ", ".join(key for key in subtree if key != TARGET)
            raise Refused(path, key, f"must be a mapping with {inside or 'parameters'}, got {shown(value)}")


def _unknown_key(key: str, path: str, tree: Tree, known: Catalogue) -> str:
    siblings = [f"{path}.{name}".lstrip(".") for name in tree]
    full = f"{path}.{key}".lstrip(".")
    near = nearest(full, [*siblings, *(parameter.key for parameter in known.parameters)])
    return f"is unknown{did_you_mean(full, near) or ': `ragbench list parameters` shows all keys'}"


def _own_stages(config: Mapping[str, Any], known: Catalogue) -> list[str]:
    """The user's own stages: keys with a `_target_` that no file has. An arm may skip them of its `order`."""
    others = ((key, node) for key, node in config.items() if key not in known.tree)
    return [key for key, node in others if isinstance(node, Mapping) and TARGET in node]


def _check_entry(label: str, key: str, entry: str, stages: Sequence[str]) -> None:
    """Raise Refused for an entry of a list of stages that is not a stage, on or off."""
    if entry not in stages:
        raise Refused(label, key, f"names '{entry}', which is not a stage{did_you_mean(entry, stages, 'stages')}")


def _stage_keys(tree: Tree, path: str = "") -> Iterator[str]:
    """The keys that `order` may name: those of nodes with a `_target_`, outside the index."""
    for key, subtree in tree.items():
        if subtree is not None and (path or key != "index"):
            if TARGET in subtree:
                yield f"{path}{key}"
            yield from _stage_keys(subtree, f"{path}{key}.")


def _nodes_with_class(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every node with a `_target_`, and its key."""
    for key, value in node.items():
        full_key = f"{path}.{key}".lstrip(".")
        if isinstance(value, Mapping):
            if TARGET in value:
                yield full_key, value
            else:
                yield from _nodes_with_class(value, full_key)
