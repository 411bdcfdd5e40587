"""A measured configuration as a readable file: the nearest preset, and only what differs from it.

Its comment has the same as an arm for `ragbench.yaml`, where it is `exp=NAME`; in a checkout the file may be saved as
`conf/exp/NAME.yaml`. It is composed again before it is written, and must give the pipeline that was measured.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragbench.base import options
from ragbench.base.fingerprint import plain
from ragbench.base.types import ConfigError
from ragbench.config import available, composition, names
from ragbench.config.overrides import key_of, word
from ragbench.config.settings import Settings
from ragbench.extras.export.file_format import FileFormat

_WIDTH = 118


@dataclass(frozen=True)
class _Difference:
    """What differs from a preset: the options of switches, and values by their keys."""

    preset: str
    options: Mapping[str, str]
    values: Mapping[str, Any]

    @property
    def size(self) -> int:
        """Count the lines to read."""
        return len(self.options) + len(self.values)

    @property
    def settings(self) -> Settings:
        """The settings that it gives."""
        return composition.compose_alone(self.overrides)

    @property
    def overrides(self) -> list[str]:
        """The words that make it."""
        chosen = [f"{group}={option}" for group, option in self.options.items()]
        return [f"exp={self.preset}", *chosen, *(word(key, value) for key, value in self.values.items())]

    def content(self, name: str) -> dict[str, Any]:
        """What the file says, without its comments."""
        nested: dict[str, Any] = {}
        for key, value in self.values.items():
            nested = options.with_value(nested, key.split("."), value)
        chosen = [{f"override /{group}": option} for group, option in sorted(self.options.items())]
        return {"defaults": [self.preset, *chosen], "name": name, **nested}


def _nearest(settings: Settings) -> _Difference:
    """The difference from the preset that the arm names, else from the one that differs least.

    Raises ConfigError when no file of differences can say it.
    """
    target, known = _search_of(settings.config), available.read()
    named = [override.partition("=")[2] for override in settings.overrides if key_of(override) == names.EXPERIMENT]
    for presets in (named, known.by_group[names.EXPERIMENT]):
        candidates = [difference for preset in presets if (difference := _difference(preset, target)) is not None]
        if candidates:
            break
    if not candidates:
        raise ConfigError(f"'{settings.name}' lacks keys that every preset has, so no file of differences can say it")
    return min(candidates, key=lambda difference: difference.size)


def _difference(preset: str, target: Mapping[str, Any]) -> _Difference | None:
    """What makes the configuration of a preset the wanted one; None where a key would have to be taken away."""
    known = available.read()
    preset_search = _search_of(composition.compose_alone([f"exp={preset}"]).config)
    best_options = {}
    for group in known.defaults:
        if group not in target or target[group] == preset_search.get(group):
            continue
        options = [known.option(group, option) for option in known.by_group[group]]
        costs = {option.name: _cost(option.content, target[group]) for option in options}
        best = min(costs, key=lambda option: costs[option])
        if costs[best] + 1 <= _cost(preset_search.get(group), target[group]):
            best_options[group] = best
    chosen = _Difference(preset, best_options, {})
    values = dict(_changes(_search_of(chosen.settings.config), target))
    return None if _GONE in values.values() else _Difference(preset, best_options, values)


_GONE = object()


def _changes(old: Any, new: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The values by key that turn one configuration into another; `_GONE` for a key to take away."""
    if old == new and type(old) is type(new):
        return
    if not isinstance(new, Mapping):
        yield key, new
        return
    old = old if isinstance(old, Mapping) else {}
    for name in {**old, **new}:
        below = f"{key}.{name}".lstrip(".")
        yield from _changes(old.get(name), new[name], below) if name in new else [(below, _GONE)]


def _cost(old: Any, new: Any) -> float:
    values = list(_changes(old, new, "x"))
    return float("inf") if any(value is _GONE for _, value in values) else len(values)


def _search_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the configuration says about the search, and not about its measurement."""
    config_of_search = composition.without_measurement(config)
    return {key: value for key, value in plain(config_of_search).items() if key != "name"}


def render(settings: Settings, origin: Sequence[str]) -> tuple[str, list[str]]:
    """The text of the file; it expresses everything."""
    import yaml

    name = "".join(letter if letter.isalnum() else "_" for letter in settings.name).strip("_") or "measured"
    name += "_measured" if name in available.read().by_group[names.EXPERIMENT] else ""
    difference = _nearest(settings)
    if _search_of(difference.settings.config) != _search_of(settings.config):
        raise ConfigError(f"the difference from {difference.preset} does not give the measured search: export a bundle")
    lines = [f"Differs from the preset {difference.preset} in {difference.size} values." if difference.size else ""]
    lines += [*origin, "Write this line below `arms:` in ragbench.yaml (or, in a checkout, save this file as"]
    lines[-1] += f" conf/exp/{name}.yaml), then: ragbench run exp={name}"
    comment = [f"# {line}" for sentence in filter(None, lines) for line in textwrap.wrap(sentence, _WIDTH)]
    arm = yaml.safe_dump({name: shlex.join(difference.overrides)}, allow_unicode=True, width=float("inf"))
    comment.append(f"#   {arm.rstrip()}")
    body = yaml.safe_dump(difference.content(name), sort_keys=False, allow_unicode=True, width=_WIDTH)
    return "\n".join(["# @package _global_", *comment, body]), []


def _loaded(settings: Settings) -> Settings:
    """What the file gives, measured where the arm was."""
    return replace(settings, config={**settings.config, **_search_of(_nearest(settings).settings.config)})


FORMAT = FileFormat(ending=".yaml", render=render, replayed=_loaded)
