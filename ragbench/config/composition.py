"""Compose configurations with Hydra: words such as `p6=on rerank.depth=20 exp=phase1` to checked settings.

Hydra composes the options that the words choose once; the values among the words are merged into a copy of that, so
that a sweep of a thousand values composes once. Errors of Hydra and OmegaConf become one sentence.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import options, registry
from ragbench.base.fingerprint import plain
from ragbench.base.options import OFF, SOURCES, TARGET, Refused, build, check_field, flat, make, sections, value_at
from ragbench.base.types import ConfigError, did_you_mean, nearest, short_path, shown
from ragbench.benchmark import load
from ragbench.benchmark.benchmark import Benchmark
from ragbench.boundary.permissions import trusting
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config import available, project, store
from ragbench.config.available import Available
from ragbench.config.benchmark import GIVEN
from ragbench.config.hydra_api import CONFIG
from ragbench.config.names import EXPERIMENT
from ragbench.config.overrides import canonical, check_option, key_of, section_of, why_not_plain, word
from ragbench.config.project import Project
from ragbench.config.sections import Basics
from ragbench.config.settings import Settings
from ragbench.config.trust import beyond_plain

if TYPE_CHECKING:
    from omegaconf import DictConfig

# Keys that say where and how to measure, not what; they are left out of an arm's name.
_MEASUREMENT_KEYS = {
    *("data", "topics", "split", "seed", "measures", "primary", "latency", "statistics", "budget", "tune"),
    *("allow_unjudged", "tracking", "paths", "cache", "artefacts", "execution", "modes"),
}
_NOT_IN_NAMES = ("name", EXPERIMENT, "design", "factors", "design_options")
_STANDARD = {name: (f"exp={name}",) for name in ("baseline", "recommended")}
"""The arms of a run that names none."""
_MOST_ARMS = 1024
_DATA_PATHS = ("corpus", "folder", "queries", "qrels")
_FITTED = ("calibration", "ranker")
"""Groups to which a project can add options: what `ragbench fit --write` writes."""


def compose(overrides: Sequence[str], *, typed: Sequence[str] | None = None) -> Settings:
    """The settings for overrides, checked.

    `typed` are those of the overrides that the user wrote (default: all); the others come from the project file.
    """
    known = available.read()
    all_overrides = _with_project_overrides(overrides, known)
    for override in all_overrides:
        if known.folders.parse(override).is_sweep_override():
            typed_word = override.removeprefix("+")  # of `+exp`, which `canonical` writes for `exp`
            raise ConfigError(f"'{typed_word}' has several values: add -m for an arm of each, or put them in [ ]")
    typed_words = canonical(overrides if typed is None else typed, known)
    _check_words_of_project(typed_words, all_overrides)
    return _compose_settings(all_overrides, known, typed_words)


def compose_alone(overrides: Sequence[str]) -> Settings:
    """The settings for words without those of a project file."""
    known = available.read()
    return _compose_settings(canonical(overrides, known), known)


def recorder(benchmark: Benchmark) -> Callable[[Settings], Settings]:
    """A function that gives settings the data of a benchmark that a script hands over, also among their overrides."""
    source = benchmark.source
    if source is None:
        nodes = {"data": {"loader": load.MEMORY, "name": benchmark.name}, "topics": {"kind": GIVEN}}
        overrides = ["data=native", "data.corpus=FOLDER/corpus", "data.qrels=FOLDER/qrels"]  # of `save_benchmark`
    else:
        overrides = _words_of(source)
        config = compose_alone(overrides).config
        nodes = {key: config[key] for key in ("data", "topics")}

    def record(settings: Settings) -> Settings:
        kept_overrides = [override for override in settings.overrides if section_of(override) not in nodes]
        return replace(settings, config={**settings.config, **nodes}, overrides=(*kept_overrides, *overrides))

    return record


def _words_of(source: Mapping[str, Any]) -> list[str]:
    """The overrides that read what `source` describes, with absolute paths and without defaults."""
    overrides = [f"data={source['data']['loader']}"]
    if "topics" in source or project.find() is not None:
        overrides.append(f"topics={source.get('topics', {}).get('kind', GIVEN)}")
    defaults = compose_alone(overrides).config
    for key, value in ((f"{section}.{key}", value) for section in source for key, value in source[section].items()):
        section, _, name = key.partition(".")
        if name in _DATA_PATHS and isinstance(value, (str, Path)) and Path(value).expanduser().exists():
            value = Path(value).expanduser().absolute()
        value = plain(value)
        if name not in ("loader", "kind") and value is not None and value != plain(defaults[section][name]):
            overrides.append(word(key, value))
    return overrides


def sweep(overrides: Sequence[str]) -> list[Settings]:
    """The settings for every combination of `key=a,b`, in order, checked; no two have the same name."""
    known = available.read()
    all_overrides = _with_project_overrides(overrides, known)
    typed = canonical(overrides, known)
    _check_words_of_project(typed, all_overrides)
    swept = {key_of(override): _swept(override, known) for override in all_overrides}
    _check_count(math.prod(map(len, swept.values())))
    varying = {key for key, several in swept.items() if len(set(several)) > 1}
    settings = [_compose_settings(batch, known, typed, varying) for batch in itertools.product(*swept.values())]
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
    return _with_project_overrides((), available.read())


def standard_arms(overrides: Sequence[str]) -> list[Settings] | None:
    """The arms of the project, else baseline and recommended; None when an override changes the pipeline."""
    if len(measurement_overrides(overrides)) < len(overrides):
        return None
    project_file = project.find()
    if project_file and project_file.arms:
        return arms(project_file.arms, overrides, of_project=True)
    return arms(_STANDARD, overrides)


def _with_project_overrides(overrides: Sequence[str], known: Available) -> list[str]:
    """The words of the project, where there is one, and the overrides."""
    typed = canonical(overrides, known)
    project_file = project.find()
    if project_file is None:
        return typed
    try:
        return canonical(project_file.overrides(typed, known), known)
    except ConfigError as error:
        raise ConfigError(f"{error} (with the words of {short_path(project_file.file)})") from None


def _check_words_of_project(typed: Sequence[str], overrides: Sequence[str]) -> None:
    """Raise ConfigError for a word of the project file that would import code or read the environment."""
    project_file = project.find()
    if project_file is None or trusting():
        return
    for override in overrides:
        if override not in typed and (reason := why_not_plain(override)):
            raise _untrusted(project_file, f"has '{override[:60]}', which {reason}")


def _check_values_of_project(settings: Settings, typed: Sequence[str], known: Available) -> None:
    """Raise ConfigError for a value of the project file that would send or start something, and that is not typed."""
    risky = beyond_plain(settings.config)
    project_file = project.find() if risky and not trusting() else None
    if project_file is None:
        return
    values = {*typed, *(value for override in typed for value in _swept(override, known))}
    own = _compose_settings([override for override in settings.overrides if override in values], known)
    of_typed = beyond_plain(own.config)
    for key, (effect, value) in risky.items():
        if of_typed.get(key) != (effect, value):
            raise _untrusted(project_file, f"sets {key}, which {effect} ({shown(value)})")


def _untrusted(project_file: Project, reason: str) -> ConfigError:
    file = short_path(project_file.file)
    return ConfigError(f"{file} {reason}: read {file}, then add --trust if you agree")


def _compose_settings(
    overrides: Sequence[str],
    known: Available,
    typed: Sequence[str] | None = None,
    varying: Collection[str] = (),
) -> Settings:
    """The settings for canonical overrides.

    Those that are not `typed` (default: all) are of the project file. An arm is named by typed words, and by those
    of the keys that are `varying`.
    """
    if not trusting():
        _check_own_files(known)
    if from_environment := registry.find("hook", "words_of_environment"):
        overrides = from_environment(overrides, os.environ)
    chosen, values = _chosen_and_values(overrides, known)
    config, options_by_group = known.folders.compose(chosen)
    try:
        for override in values:
            _set(config, override, known)
        values_by_key = _resolved(config, overrides)
        for group, option in options_by_group.items():
            # What a preset sets for a switch that is off has no effect.
            if option == OFF and not any(key_of(override).startswith(f"{group}.") for override in overrides):
                values_by_key[group] = dict(known.option(group, OFF).content)
        values_by_key = with_added_stages(values_by_key)
        name = _arm_name(values_by_key.get("name"), overrides, varying, set(map(key_of, typed or ())))
        settings = Settings(name, values_by_key, tuple(overrides))
        _check(values_by_key, known, options_by_group)
        if typed is not None:
            _check_values_of_project(settings, typed, known)
        return settings.check()
    except Refused as refusal:
        raise ConfigError(f"{refusal}{_file_of_refused_value(str(refusal), overrides, typed, known)}") from None


def _check_own_files(known: Available) -> None:
    """Raise ConfigError for a file next to the project file that does more than `ragbench fit --write` does.

    It may come from a third party: it chooses values of known classes in the groups that are fitted, and nothing else.
    """
    for path in (path for folder in known.folders.paths[1:] for path in sorted(folder.rglob("*.yaml"))):
        text, content = path.read_text(encoding="utf-8", errors="replace"), read_yaml_file(path)
        target = content.get(TARGET) if isinstance(content, dict) else None
        is_plain = (
            path.parent.name in _FITTED and "@package" not in text and "${" not in text and "defaults:" not in text
        )
        if not is_plain or options.named(str(target)) is None:
            what = f"has the class {target}" if is_plain and target else "is not what ragbench fit writes"
            raise ConfigError(f"{short_path(path)} {what}: read it, then add --trust if you agree, or remove it")


def _chosen_and_values(overrides: Sequence[str], known: Available) -> tuple[list[str], list[str]]:
    """The words that choose options, checked and as Hydra takes them, and the words that set values."""
    chosen, values = [], []
    for override in overrides:
        key = key_of(override)
        if key == "data.loader":
            raise ConfigError("data.loader cannot be set: choose the collection by its name, such as data=vault")
        if key not in known.by_group:
            values.append(override)
            continue
        value = known.folders.parse(override).value()
        check_option(key, value, known)
        sign = "+" if key == EXPERIMENT or key in known.added else ""
        chosen.append(f"{sign}{override.lstrip('+')}")
    return chosen, values


def _set(config: DictConfig, override: str, known: Available) -> None:
    """Set the value of a word in a composed configuration, as Hydra does."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    key, value = key_of(override), known.folders.parse(override).value()
    _check_key(config, key, value, known)
    try:
        OmegaConf.update(config, key, value, merge=True, force_add=True)
    except (OmegaConfBaseException, ValueError, TypeError):
        _refuse_type(config, key, value)
        raise ConfigError(f"{key} cannot be set to {shown(value)}: `ragbench list parameters` shows its kind") from None


def _check_key(config: DictConfig, key: str, value: Any, known: Available) -> None:
    """Raise Refused for a key that the configuration does not have; a mapping of values, such as weights, takes any."""
    from omegaconf import DictConfig

    node: Any = config
    path = key.split(".")
    for position, part in enumerate(path):
        above = ".".join(path[:position])
        if position and node is not None and node._is_none():
            raise ConfigError(f"{key} has no effect: {above} is off")
        if not isinstance(node, DictConfig):
            raise ConfigError(f"{above} has no keys, so {key} cannot be set")
        if part not in node:
            if (position and not known.node(above)) or (not position and _is_stage(value)):
                return  # inside a mapping that is a value itself, such as weights, or a stage
            raise _refused(key, known, ".".join(path[: position + 1]))
        node = node._get_node(part)
        if isinstance(node, DictConfig) and node._is_interpolation():
            return
    if not isinstance(node, DictConfig) or not known.node(key) or isinstance(value, dict):
        return
    if not (value is None and TARGET in node) and not (isinstance(value, str) and value.startswith("$")):
        inside = ", ".join(str(name) for name in node if not str(name).startswith("_"))
        raise ConfigError(f"{key} must be a mapping with {inside or 'parameters'}, got {shown(value).strip(chr(39))}")


def _is_stage(value: Any) -> bool:
    return isinstance(value, Mapping) and TARGET in value


def _refuse_type(config: DictConfig, key: str, value: Any) -> None:
    """Raise Refused, in the words of the class that a key belongs to, for a value of another type."""
    from omegaconf import OmegaConf

    above, _, name = key.rpartition(".")
    node: Any = OmegaConf.select(config, above) if above else config
    for source in store.sources_of(OmegaConf.get_type(node)) if above else (Basics,):
        try:
            check_field(source, name, value)
        except Refused as refusal:
            raise ConfigError(f"{above}.{refusal}".lstrip(".")) from None
        except KeyError:
            continue


def _resolved(config: DictConfig, overrides: Sequence[str]) -> dict[str, Any]:
    """The plain values, with everything that refers to another key resolved."""
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationResolutionError, MissingMandatoryValue, OmegaConfBaseException

    try:
        made = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
        assert isinstance(made, dict)
        return {str(key): value for key, value in made.items()}
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key or 'a key'} is ???: give it a value") from None
    except InterpolationResolutionError as error:
        raise ConfigError(f"{error.full_key or 'a key'} refers to a key that does not exist or to itself") from None
    except (OmegaConfBaseException, ValueError, TypeError, AttributeError):
        typed = " ".join(override.removeprefix("+") for override in overrides)
        raise ConfigError(f"'{typed}' cannot be composed: look for a key or a ${{}} that is not complete") from None


def with_added_stages(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the stages that are on and that `order` does not name, each at the place of its class."""
    known = available.read()
    if not isinstance(stages := config.get("order"), list):
        default = short_path(known.folders.paths[0] / f"{CONFIG}.yaml")
        raise ConfigError(f"order must be a list of stages, got {shown(stages)}: the default is in {default}")
    order = list(stages)
    places = {option.group: option.place for option in options.options() if option.place}
    for group in known.added:
        if not _is_stage(config.get(group)) or group in order:
            continue
        if group not in places:
            raise ConfigError(f"{group} is on, but no place in order: give @option before= or after= an entry of order")
        ((side, neighbour),) = places[group].items()
        if neighbour not in order:
            raise ConfigError(f"'{neighbour}' is not an entry of order{did_you_mean(neighbour, order, 'entries')}")
        order.insert(order.index(neighbour) + (side == "after"), group)
    return {**config, "order": order}


def _file_of_refused_value(
    message: str, overrides: Sequence[str], typed: Sequence[str] | None, known: Available
) -> str:
    """The file of a refused value, in parentheses; empty when the value was typed."""
    refused = f"{message.split()[0]}."

    def is_among(keys: Iterable[str]) -> bool:
        return any(refused.startswith(f"{key}.") or f"{key}.".startswith(refused) for key in keys)

    preset = next((override.partition("=")[2] for override in overrides if key_of(override) == EXPERIMENT), None)
    if is_among(map(key_of, overrides)):
        project_file = None if typed is None or is_among(map(key_of, typed)) else project.find()
        return f" (in {short_path(project_file.file)})" if project_file else ""
    of_preset = preset is not None and is_among(known.preset(preset).values)
    file = known.folders.file(EXPERIMENT, str(preset)) if of_preset else None
    return f" (in {short_path(file or known.folders.paths[0] / f'{CONFIG}.yaml')})"


def _arm_name(name: Any, overrides: Sequence[str], varying: Collection[str], typed: Collection[str]) -> str:
    """The configured name, such as that of a preset, with the words that vary and the further ones that are typed.

    Without a configured name, the words that vary, else all. A typed name gets no further words.
    """
    by_word = {item.lstrip("+").replace(r"\:", ":"): key_of(item) for item in overrides}  # Hydra escapes colons
    varied = [word for word, key in by_word.items() if key in varying and key not in (EXPERIMENT, "name")]
    searched = [word for word in by_word if section_of(word) not in (*_MEASUREMENT_KEYS, *_NOT_IN_NAMES)]
    if not name:
        return " ".join(word for word in varied or searched if word in searched) or "default"
    added = [] if "name" in typed else [word for word in searched if by_word[word] in typed]
    return " ".join([str(name), *(word for word in by_word if word in (*varied, *added))])


def _swept(override: str, known: Available) -> list[str]:
    """An override with each of its values. Raises ConfigError for values that cannot be listed, and for none."""
    parsed, typed = known.folders.parse(override), override.removeprefix("+")
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


def _check_count(count: int) -> None:
    """Raise ConfigError for a sweep of too many arms."""
    if count > _MOST_ARMS:
        raise ConfigError(f"the sweep has {count} arms, at most {_MOST_ARMS} are possible: vary fewer keys or values")


def _check(config: Mapping[str, Any], known: Available, chosen: Mapping[str, Any]) -> None:
    """Check the values of every section of a whole configuration, before anything is built.

    Raise Refused, or another ConfigError, for the first error. The bounds of a value come from the dataclass that its
    section becomes. `chosen` has the chosen option of every group.
    """
    if EXPERIMENT in config:
        file = known.folders.file(EXPERIMENT, str(chosen.get(EXPERIMENT)))
        raise ConfigError(f"{short_path(file) if file else EXPERIMENT} must begin with the line `# @package _global_`")
    for group, name in chosen.items():
        package, own = available.package_of(group), known.folders.file(group, str(name))
        if own is not None and package != group and group in config and group not in sections():
            raise ConfigError(f"{short_path(own)} must begin with the line `# @package {package}`")
    for key, value in config.items():
        if key not in known.names and not _is_stage(value):
            raise _refused(key, known, key)
    basics = Basics.of(config)
    for group in known.defaults:
        if chosen.get(group) in (None, OFF) and config.get(group):
            off = flat(known.option(group, OFF).content)
            for leaf, value in flat(config[group]).items():
                if off.get(leaf) != value:
                    raise _refused(f"{group}.{leaf}", known, f"{group}.{leaf}")
    stages = (*store.stage_keys(), *(key for key in config if _is_stage(config[key])), SOURCES, *known.order)
    listed = [("", "order", basics.order)]
    listed += [(f"modes.{mode}", "without", node.get("without", ())) for mode, node in config["modes"].items()]
    for label, key, entry in ((label, key, entry) for label, key, entries in listed for entry in entries):
        if entry not in stages:
            raise Refused(label, key, f"names '{entry}', which is not a stage{did_you_mean(entry, stages, 'stages')}")
    if TARGET not in (value_at(config, ("index", "chunking")) or {}):
        raise Refused("index", "chunking", f"must name a class in {TARGET}")
    for key, cls in sections().items():
        node = value_at(config, key.split(".")) if key else None
        if key and node is None:
            raise Refused("", key, "is missing")
        if isinstance(node, Mapping):
            build(cls, node, key)
        elif key:
            inside = ", ".join(field.name for field in dataclasses.fields(cls))
            raise Refused("", key, f"must be a mapping with {inside}, got {shown(node)}")
    for group, cls in store.plain_options(chosen):
        build(cls, config[group], group)
    load.check(config["data"])
    for path in (key.removesuffix(f".{TARGET}") for key in flat(config) if key.endswith(f".{TARGET}")):
        make(value_at(config, path.split(".")), path)


def _refused(key: str, known: Available, unknown: str) -> Refused:
    """The error for a key that no chosen option has, or none at all; `unknown` is its part that does not exist."""
    group = next((group for group in known.defaults if key.startswith(f"{available.package_of(group)}.")), "")
    inside = key.removeprefix(f"{available.package_of(group)}.")
    owners = [
        f"{group}={name}"
        for name in known.by_group.get(group, ())
        if name != OFF and _has_key(known.option(group, name).content, inside)
    ]
    if owners:
        return Refused("", key, f"cannot be set with {group}={known.defaults[group]}: add {' or '.join(owners)}")
    unknown = key if unknown in known.by_group else unknown
    placed = f"{available.package_of(section_of(key))}.{key.partition('.')[2]}"
    near = [placed] if placed in known.values else nearest(unknown, [*known.values, *known.by_group])
    hint = did_you_mean(unknown, near) if near else ": `ragbench list parameters` shows all keys"
    return Refused("", unknown, f"is unknown{hint}")


def _has_key(content: Mapping[str, Any], key: str) -> bool:
    """Whether an option has a key; a mapping such as the weights of fields has any."""
    return key in flat(content) or isinstance(value_at(content, key.split(".")[:-1] or [key]), Mapping)
