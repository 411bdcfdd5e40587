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

from ragbench.base.errors import ConfigError
from ragbench.base.fingerprint import plain
from ragbench.config import catalogue, composition
from ragbench.config.overrides import EXPERIMENT, key_of, word
from ragbench.config.settings import Settings
from ragbench.export.file_format import FileFormat

_WIDTH = 118


@dataclass(frozen=True)
class _Difference:
    """What differs from a preset: the options of switches, and values by their keys."""

    preset: str
    choices: Mapping[str, str]
    values: Mapping[str, Any]

    @property
    def size(self) -> int:
        """Count the lines to read."""
        return len(self.choices) + len(self.values)

    @property
    def settings(self) -> Settings:
        """The settings that it gives."""
        return composition.compose_alone(self.words)

    @property
    def words(self) -> list[str]:
        """The words that make it."""
        chosen = [f"{group}={option}" for group, option in self.choices.items()]
        return [f"exp={self.preset}", *chosen, *(word(key, value) for key, value in self.values.items())]

    def content(self, name: str) -> dict[str, Any]:
        """What the file says, without its comments."""
        nested: dict[str, Any] = {}
        for key, value in self.values.items():
            place = nested
            *above, last = key.split(".")
            for part in above:
                place = place.setdefault(part, {})
            place[last] = value
        chosen = [{f"override /{group}": option} for group, option in sorted(self.choices.items())]
        return {"defaults": [self.preset, *chosen], "name": name, **nested}


def nearest(settings: Settings) -> _Difference:
    """The difference from the preset that the arm names, else from the one that differs least.

    Raises ConfigError when no file of differences can say it.
    """
    wanted, known = _search_of(settings.config), catalogue.read()
    named = [each.partition("=")[2] for each in settings.overrides if key_of(each) == EXPERIMENT]
    for presets in (named, known.choices[EXPERIMENT]):
        found = [each for preset in presets if (each := _difference(preset, wanted)) is not None]
        if found:
            break
    if not found:
        raise ConfigError(f"'{settings.name}' lacks keys that every preset has, so no file of differences can say it")
    return min(found, key=lambda each: each.size)


def _difference(preset: str, wanted: Mapping[str, Any]) -> _Difference | None:
    """What makes the configuration of a preset the wanted one; None where a key would have to be taken away."""
    known = catalogue.read()
    before = _search_of(composition.compose_alone([f"exp={preset}"]).config)
    choices = {}
    for group in known.defaults:
        if group not in wanted or wanted[group] == before.get(group):
            continue
        costs = {option: _cost(known.content(group, option), wanted[group]) for option in known.choices[group]}
        best = min(costs, key=lambda option: costs[option])
        if costs[best] + 1 <= _cost(before.get(group), wanted[group]):
            choices[group] = best
    chosen = _Difference(preset, choices, {})
    values = dict(_changes(_search_of(chosen.settings.config), wanted))
    return None if _GONE in values.values() else _Difference(preset, choices, values)


_GONE = object()


def _changes(before: Any, wanted: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The values by key that turn one configuration into another; `_GONE` for a key to take away."""
    if before == wanted and type(before) is type(wanted):
        return
    if not isinstance(wanted, Mapping):
        yield key, wanted
        return
    before = before if isinstance(before, Mapping) else {}
    for name in {**before, **wanted}:
        below = f"{key}.{name}".lstrip(".")
        yield from _changes(before.get(name), wanted[name], below) if name in wanted else [(below, _GONE)]


def _cost(before: Any, wanted: Any) -> float:
    values = list(_changes(before, wanted, "x"))
    return float("inf") if any(value is _GONE for _, value in values) else len(values)


def _search_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the configuration says about the search, and not about its measurement."""
    kept = composition.without_measurement(config)
    return {key: value for key, value in plain(kept).items() if key != "name"}


def render(settings: Settings, origin: Sequence[str], version: str | None) -> tuple[str, list[str]]:
    """The text of the file; it expresses everything."""
    import yaml

    name = "".join(letter if letter.isalnum() else "_" for letter in settings.name).strip("_") or "measured"
    name += "_measured" if name in catalogue.read().choices[EXPERIMENT] else ""
    found = nearest(settings)
    if _search_of(found.settings.config) != _search_of(settings.config):
        raise ConfigError(f"the difference from {found.preset} does not give the measured search: export a bundle")
    about = [f"Differs from the preset {found.preset} in {found.size} values." if found.size else ""]
    about += [*origin, "Write this line below `arms:` in ragbench.yaml (or, in a checkout, save this file as"]
    about[-1] += f" conf/exp/{name}.yaml), then: ragbench run exp={name}"
    comment = [f"# {line}" for sentence in filter(None, about) for line in textwrap.wrap(sentence, _WIDTH)]
    arm = yaml.safe_dump({name: shlex.join(found.words)}, allow_unicode=True, width=float("inf"))
    comment.append(f"#   {arm.rstrip()}")
    body = yaml.safe_dump(found.content(name), sort_keys=False, allow_unicode=True, width=_WIDTH)
    return "\n".join(["# @package _global_", *comment, body]), []


def _loaded(settings: Settings) -> Settings:
    """What the file gives, measured where the arm was."""
    return replace(settings, config={**settings.config, **_search_of(nearest(settings).settings.config)})


FORMAT = FileFormat(ending=".yaml", render=render, replayed=lambda settings, version: _loaded(settings))
