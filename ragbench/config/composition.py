"""Compose configurations: what the catalogue declares, merged by OmegaConf, and words in Hydra's grammar on top.

No other module imports Hydra or OmegaConf, and none of their messages are shown. One process composes every arm of a
sweep, so that arms can share work and be timed side by side.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from ragbench.base import extensions
from ragbench.base.bounds import Refused, shown
from ragbench.base.build import build
from ragbench.base.errors import ConfigError
from ragbench.base.suggestions import did_you_mean
from ragbench.boundary.capabilities import Capability, trusting
from ragbench.config import catalogue, project
from ragbench.config.catalogue import Catalogue, Experiment, numbered
from ragbench.config.catalogue.nodes import below, plain
from ragbench.config.function_stage import insert, node_of
from ragbench.config.grants import needs_of, require_plain, require_within, why_not_plain
from ragbench.config.overrides import EXPERIMENT, canonical, check_choice, from_environment, key_of, section_of
from ragbench.config.schema import check
from ragbench.config.settings import Settings

# Keys that say where and how to measure, not what; they are left out of an arm's name.
_MEASUREMENT_KEYS = {
    *("data", "topics", "split", "seed", "measures", "primary", "latency", "statistics", "budget", "tune"),
    *("allow_unjudged", "tracking", "paths", "cache", "execution", "artefacts", "modes"),
}
_STANDARD = {name: (f"exp={name}",) for name in ("baseline", "recommended")}
"""The arms of a run that names none."""
_MOST_ARMS = 1024
_ASKED = (Capability.SENDS, Capability.EXECUTES)
"""What a project file may only do with `--trust`."""

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
    words = _with_project_words(overrides, known)
    for word in words:
        if _parse(word).is_sweep_override():
            typed_word = word.removeprefix("+")  # of `+exp`, which `canonical` writes for `exp`
            raise ConfigError(f"'{typed_word}' has several values: add -m for an arm of each, or put them in [ ]")
    trusted = _inspect_project(canonical(overrides if typed is None else typed, known), words, known)
    return _compose_settings(words, set(), known, lambda settings: (trusted(settings), inspect(settings)))


def compose_alone(words: Sequence[str]) -> Settings:
    """The settings for words without those of a project file."""
    known = catalogue.read()
    return _compose_settings(canonical(words, known), set(), known)


def compose_for(words: Sequence[str], base: Sequence[str], may: frozenset[Capability]) -> Settings:
    """The settings for overrides with no more permissions than `may`, after those of `base`, which may do anything.

    Raises ConfigError before anything is imported, sent, started or read that is not allowed.
    """
    if Capability.EXECUTES not in may:
        require_plain(words)
    before = compose(base)
    return compose([*base, *words], inspect=lambda settings: require_within(settings, may, before))


def sweep(overrides: Sequence[str]) -> list[Settings]:
    """The settings for every combination of `key=a,b`, in order, checked; no two have the same name."""
    known = catalogue.read()
    words = _with_project_words(overrides, known)
    trusted = _inspect_project(canonical(overrides, known), words, known)
    batches = _expand_sweep(words)
    varying = {key for key in map(key_of, batches[0]) if len({_override_of(batch, key) for batch in batches}) > 1}
    settings = [_compose_settings(batch, varying, known, trusted) for batch in batches]
    names = [each.name for each in settings]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated:
        raise ConfigError(f"two arms would be called '{repeated}': give them different names with name=...")
    return settings


def measurement_overrides(words: Iterable[str]) -> list[str]:
    """The overrides that say where and how to measure, not what."""
    return [word for word in words if section_of(word) in _MEASUREMENT_KEYS]


def without_measurement(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a configuration says about the search, without where and how to measure."""
    return {key: value for key, value in config.items() if key not in _MEASUREMENT_KEYS}


def arms(named: Mapping[str, Sequence[str]], shared: Sequence[str] = (), *, of_project: bool = False) -> list[Settings]:
    """The settings of arms by name, each made of the shared overrides and its own; its own win.

    `of_project`: the words of the arms stand in the project file.
    """
    found = []
    for name, words in named.items():
        try:
            settings = compose([*shared, *words], typed=shared if of_project else None)
        except ConfigError as error:
            raise ConfigError(f"{error} (arm '{name}')") from None
        found.append(Settings(name, {**settings.config, "name": name}, settings.overrides))
    return found


def project_words() -> list[str]:
    """The words of the project file, with which every command in the folder begins; none without a project."""
    return _with_project_words((), catalogue.read())


def standard_arms(overrides: Sequence[str]) -> list[Settings] | None:
    """The arms of the project, else baseline and recommended; None when an override changes the pipeline."""
    if len(measurement_overrides(overrides)) < len(overrides):
        return None
    found = project.find()
    if found and found.arms:
        return arms(found.arms, overrides, of_project=True)
    return arms(_STANDARD, overrides)


def _with_project_words(overrides: Sequence[str], known: Catalogue) -> list[str]:
    """The words of the project, where there is one, and the overrides."""
    typed = canonical(overrides, known)
    found = project.find()
    if found is None:
        return typed
    try:
        return canonical(found.words(typed, known), known)
    except ConfigError as error:
        raise ConfigError(f"{error} (with the words of {_relative_to_cwd(found.file)})") from None


def _inspect_project(typed: Sequence[str], words: Sequence[str], known: Catalogue) -> _Inspect:
    """Return a function that refuses what the project file would send or start, beyond what was typed."""
    found = project.find()
    if found is None or trusting():
        return _accept
    typed = [word for word in typed if word in words]  # without the name of an arm, whose words are the file's
    file = _relative_to_cwd(found.file)
    ask = f"read {file}, then add --trust if you agree"
    for word in words:
        if word not in typed and (reason := why_not_plain(word)):
            raise ConfigError(f"{file} has '{word[:60]}', which {reason}: {ask}")
    known_urls = {known.content("data", option).get("url") for option in known.choices["data"]} - {None}

    def inspect(settings: Settings) -> None:
        risky = {key: need for key, need in needs_of(settings).items() if need[0] in _ASKED}
        if settings.config["data"].get("url") in known_urls:
            risky.pop("data.url", None)
        mine = needs_of(_compose_settings(typed, set(), known)) if risky else {}
        for key, need in risky.items():
            if mine.get(key) != need:
                raise ConfigError(f"{file} sets {key}, which {need[0]} ({shown(need[1])}): {ask}")

    return inspect


def _compose_settings(
    words: Sequence[str], varying: set[str], known: Catalogue, inspect: _Inspect = _accept
) -> Settings:
    added = [word for word in words if _is_function_stage(key_of(word), known)]
    if added:
        rest = [word for word in words if word not in added]
        settings = _with_function_stages(_compose_settings(rest, varying, known, inspect), added)
        return replace(settings, name=_arm_name(settings.config, words, varying), overrides=tuple(words))
    words = from_environment(words, os.environ)
    chosen = _experiment(words, known)
    choices = {**known.defaults, **(chosen.choices if chosen else {})}
    spaces = known.search_space_choice
    for word in words:
        if key_of(word) in known.choices:
            value = _parse(word).value()
            check_choice(key_of(word), value, known)
            if key_of(word) in known.defaults:
                choices[key_of(word)] = value
            elif key_of(word) == "tune":
                spaces = tuple(value if isinstance(value, list) else [value])
        else:
            _check_mapping(key_of(word), word.partition("=")[2], known)
    options = (*choices.items(), *(("tune", space) for space in spaces))
    config = _compose_config(words, options, chosen.name if chosen else None, known)
    for word in words:
        group, _, option = word.partition("=")
        if (
            option == "off"
            and chosen is not None
            and _sets_key_below(chosen.values, group)
            and not _sets_key_below(words, group)
        ):
            config[group] = known.content(group, option)  # the experiment's values for it have no effect now
    settings = Settings(_arm_name(config, words, varying), config, tuple(words))
    try:
        check(config, known, choices)
        inspect(settings)
        return settings.check()
    except Refused as refusal:
        raise ConfigError(f"{refusal}{_file_of_refused_value(str(refusal), words, chosen, known)}") from None


def _is_function_stage(key: str, known: Catalogue) -> bool:
    name = section_of(key)
    return name not in known.tree and name not in known.choices and extensions.find("stage", name) is not None


def _with_function_stages(settings: Settings, words: Sequence[str]) -> Settings:
    """The settings with a stage for each function that the words turn on, in the order of the words."""
    chosen: dict[str, dict[str, Any]] = {}
    off = set()
    for word in words:
        name, _, parameter = key_of(word).partition(".")
        value, values = _parse(word).value(), chosen.setdefault(name, {})
        if parameter:
            values[parameter] = value
        elif value == "off":
            off.add(name)
        elif value != "on":
            raise ConfigError(f"{name} cannot be {shown(value)}: the choices are on, off")
    for name in [name for name in chosen if name not in off]:
        cls = extensions.find("stage", name)
        settings = insert(settings, name, node_of(build(cls, chosen[name], name)), cls.place)
    return settings.check()


def _experiment(words: Sequence[str], known: Catalogue) -> Experiment | None:
    """The experiment that words name, its choices checked."""
    name = next((_parse(word).value() for word in words if key_of(word) == EXPERIMENT), None)
    if name is None:
        return None
    check_choice(EXPERIMENT, name, known)
    found, file = known.experiment(name), _relative_to_cwd(known.folder / EXPERIMENT / f"{name}.yaml")
    for group, option in found.choices.items():
        if group not in known.defaults:
            near = [numbered(group)] if numbered(group) in known.defaults else known.defaults
            raise ConfigError(f"{file} chooses '{group}', which is not a switch{did_you_mean(numbered(group), near)}")
        check_choice(group, option, known, f" (in {file})")
    for key, value in found.values.items():
        if value == "???" or section_of(key) == "hydra":
            raise ConfigError(f"{file} sets {key} to {value}, which is not a value: remove it")
        _check_mapping(key, value, known, f" (in {file})")
    return found


def _compose_config(
    words: Sequence[str], options: tuple[tuple[str, str], ...], experiment: str | None, known: Catalogue
) -> Any:
    """The options of groups, the experiment and the words merged, everything resolved."""
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationResolutionError, MissingMandatoryValue, OmegaConfBaseException

    try:
        composed, values = (
            _merged(known, options, experiment),
            [word for word in words if key_of(word) not in known.choices],
        )
        composed = deepcopy(composed) if values else composed  # a copy takes half the time of all this
        for word in values:
            OmegaConf.update(composed, key_of(word), _parse(word).value(), merge=True, force_add=True)
        return OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key or 'a key'} is ???: give it a value") from None
    except InterpolationResolutionError as error:
        for word in words:
            _check_mapping(key_of(word), word.partition("=")[2], known, only_lists=False)
        raise ConfigError(f"{error.full_key or 'a key'} refers to a key that does not exist or to itself") from None
    except (OmegaConfBaseException, ValueError, TypeError, AttributeError):
        blamed = next((word for word in words if _is_below_a_value(key_of(word), known)), "")
        if blamed:
            raise ConfigError(f"{key_of(blamed)} is unknown: the key above it holds a value, not keys") from None
        typed = " ".join(word.removeprefix("+") for word in words)
        raise ConfigError(f"'{typed}' cannot be composed: look for a key or a ${{}} that is not complete") from None


@lru_cache(maxsize=64)  # arms differ in values more often than in choices
def _merged(known: Catalogue, options: tuple[tuple[str, str], ...], experiment: str | None) -> Any:
    """What files and classes say for a choice of options: config.yaml over the options, the experiment over both."""
    from omegaconf import OmegaConf

    own = [] if experiment is None else [OmegaConf.create(known.experiment(experiment).content)]
    return OmegaConf.merge(*(_option(known, group, name) for group, name in options), _base(known), *own)


@lru_cache(maxsize=1024)
def _option(known: Catalogue, group: str, name: str) -> Any:
    """What an option says; merging copies it."""
    from omegaconf import OmegaConf

    chosen = known.option(group, name)
    return OmegaConf.create(plain(below(chosen.package, chosen.node)))


@lru_cache(maxsize=8)
def _base(known: Catalogue) -> Any:
    """What config.yaml says; merging copies it."""
    from omegaconf import OmegaConf

    return OmegaConf.create(plain(known.base))


def _is_below_a_value(key: str, known: Catalogue) -> bool:
    place: Any = known.tree
    for part in key.split("."):
        if place is None:
            return True
        place = place.get(part, {})
    return False


def _check_mapping(key: str, value: str, known: Catalogue, where: str = "", only_lists: bool = True) -> None:
    """Raise ConfigError for a list instead of a mapping: Hydra cannot merge it, so `check` would not see it.

    Without `only_lists` any other value instead of a mapping is refused too: some key refers to a key of the mapping.
    """
    place: Any = known.tree
    for part in key.split("."):
        place = place.get(part) if place else None
    wrong = value.startswith("[") if only_lists else not value.startswith(("{", "$"))
    if place and wrong and key not in known.choices:
        inside = ", ".join(each for each in place if not each.startswith("_"))
        raise ConfigError(f"{key} must be a mapping with {inside}, got {value[:60]}{where}")


def _file_of_refused_value(message: str, words: Sequence[str], chosen: Experiment | None, known: Catalogue) -> str:
    """The file of a refused value, in parentheses; empty when the value was typed."""
    key = message.split()[0]
    if any(_overlap(key, key_of(word)) for word in words):
        return ""
    if chosen is not None and any(_overlap(key, each) for each in chosen.values):
        return f" (in {_relative_to_cwd(known.folder / EXPERIMENT / f'{chosen.name}.yaml')})"
    group = section_of(key)
    return f" (in {_relative_to_cwd(known.where(group) if group in known.choices else known.folder / 'config.yaml')})"


def _sets_key_below(words: Iterable[str], group: str) -> bool:
    return any(key_of(word).startswith(f"{group}.") for word in words)


def _overlap(key: str, other: str) -> bool:
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def _relative_to_cwd(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _arm_name(config: Any, batch: Sequence[str], varying: set[str]) -> str:
    """The configured name (an experiment sets its own), then what varies over the sweep."""
    extra = [item for item in batch if key_of(item) in varying - {EXPERIMENT, "name"}]
    given = config.get("name")
    if given:
        return " ".join([str(given), *extra])
    shown = [item.lstrip("+") for item in (extra or batch) if section_of(item) not in _MEASUREMENT_KEYS]
    return " ".join(shown) or "default"


def _expand_sweep(words: Sequence[str]) -> list[list[str]]:
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.errors import HydraException

    for word in words:
        parsed = _parse(word)
        if parsed.is_sweep_override() and not (parsed.is_discrete_sweep() or parsed.is_range_sweep()):
            raise ConfigError(
                f"'{word.removeprefix('+')}' cannot be swept: list its values, as in {key_of(word)}=1,2,3"
            )
    arms = math.prod(_count_values(_parse(word)) for word in words)
    if arms > _MOST_ARMS:
        raise ConfigError(f"the sweep has {arms} arms, at most {_MOST_ARMS} are possible: vary fewer keys or values")
    try:
        jobs = BasicSweeper.split_arguments([_parse(word) for word in words], max_batch_size=None)
        return [batch for job in jobs for batch in job]
    except (HydraException, ValueError):
        typed = " ".join(word.removeprefix("+") for word in words)
        raise ConfigError(f"cannot sweep {typed}: list values, as in fuse.k=20,60") from None


def _count_values(parsed: Any) -> int:
    """How many values an override has."""
    if parsed.is_range_sweep():
        swept = parsed.value()
        return max(1, math.ceil(float(swept.stop - (swept.start or 0)) / float(swept.step)))
    if not parsed.is_sweep_override():
        return 1
    from hydra.errors import HydraException

    try:
        count = len(list(parsed.sweep_iterator()))
    except HydraException:
        raise ConfigError(f"{parsed.key_or_group} has no files to choose from: list its values, as in 1,2,3") from None
    if not count:
        raise ConfigError(f"'{parsed.input_line.removeprefix('+')}' matches no value: list its values, as in 1,2,3")
    return count


class _Options:
    """What the parser asks Hydra's loader of files: the options of a group."""

    def get_group_options(self, group_name: str, *others: object, **more: object) -> list[str]:
        return list(catalogue.read().choices.get(group_name, ()))


def _parse(word: str) -> Any:
    """A word as Hydra parses it; `*` stands for all choices of its group."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        (parsed,) = OverridesParser.create(config_loader=cast(Any, _Options())).parse_overrides([word])
        return parsed
    except (HydraException, ValueError):  # of Python: a number of 5000 digits
        key, _, value = word.lstrip("+").partition("=")
        raise ConfigError(
            f"{key} cannot be read from '{value[:60]}': close its brackets and quotes, "
            f"and quote a text that holds signs, as in {key}=\"'a, b'\""
        ) from None


def _override_of(batch: Sequence[str], key: str) -> str | None:
    return next((item for item in batch if key_of(item) == key), None)
