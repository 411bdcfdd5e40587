"""An ablation: the arms of a design, run together, and the verdict on every factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ragbench.base.errors import ConfigError
from ragbench.base.files import write_text
from ragbench.config import catalogue
from ragbench.config.overrides import section_of
from ragbench.config.settings import Settings
from ragbench.evidence.arms import Arms, JudgedContrast
from ragbench.experiment.design import Design, design_named
from ragbench.results import verdicts

if TYPE_CHECKING:
    from ragbench.results.measurements import Measurements

_CONDITIONS = ("calibration", "filters", "hyde", "recency")
"""Switches that are varied only when `factors` names them: they are the conditions of a search."""


@dataclass(frozen=True)
class Ablation:
    """A design with the settings of its arms, in the design's order."""

    design: Design
    settings: tuple[Settings, ...]


Candidates = Mapping[str, Sequence[str]]
"""Overrides by name that are added to the base together, as one factor."""


def plan(
    base: Settings, compose: Callable[[Sequence[str]], Settings], candidates: Candidates | None = None
) -> Ablation:
    """The arms that `base` asks for by `design`, `factors` and `design_options`; `candidates` are factors as well.

    `compose` turns overrides into settings. Without `factors` and candidates: the switches that are on in the base; for
    add_one those that the preset `all` turns on and the base does not.
    """
    candidates, name = candidates or {}, str(base.config["design"])
    factors = base.config["factors"] or ([] if candidates else _default_factors(base, name))
    if isinstance(factors, str):
        raise ConfigError(f"factors must be a list such as [p1,p6], got {factors}")
    for factor in factors:
        if factor not in base.config or not isinstance(base.config[factor], Mapping):
            raise ConfigError(f"factor '{factor}' is not a switch; switches: {', '.join(_on_off_switches(base))}")
    if taken := next((each for each in candidates if each in base.config), None):
        raise ConfigError(f"--arm {taken} has the name of a key of the configuration: give it another name")
    design = design_named(name, [*map(str, factors), *candidates], **base.config["design_options"])
    flipped = _flipped(base, [each for each in design.factors if each not in candidates], compose)
    arms = {}
    for arm, states in design.arms().items():
        added = [word for each, words in candidates.items() if states[each] for word in words]
        start = compose([*base.overrides, *added]) if added else base
        arms[arm] = _arm(start, arm, {each: on for each, on in states.items() if each not in candidates}, flipped)
    return Ablation(design, tuple(arms.values()))


def _flipped(base: Settings, factors: Sequence[str], compose: Callable[[Sequence[str]], Settings]) -> Mapping[str, Any]:
    """The configuration of every factor with its switch flipped; None for one that is then not there.

    All are composed at once, as a composition takes a third of a second.
    """
    rest = [each for each in base.overrides if section_of(each) not in factors]
    other = [f"{factor}={'off' if _is_on(base.config[factor]) else 'on'}" for factor in factors]
    composed = compose([*rest, *other]).config
    return {factor: composed.get(factor) for factor in factors}


def _arm(base: Settings, name: str, states: Mapping[str, bool], flipped: Mapping[str, Any]) -> Settings:
    """The base with some factors flipped; the others keep all of their parameters."""
    changed = [factor for factor, on in states.items() if on != _is_on(base.config[factor])]
    config = {**base.config, "name": name, **{factor: flipped[factor] for factor in changed}}
    absent = {factor for factor in changed if flipped[factor] is None}
    config = {key: value for key, value in config.items() if key not in absent}
    config["order"] = [entry for entry in base.config["order"] if section_of(str(entry)) not in absent]
    overrides = [each for each in base.overrides if section_of(each) not in (*changed, "name")]
    words = [f"{factor}={'on' if on else 'off'}" for factor, on in states.items() if factor in changed]
    return Settings(name, config, (*overrides, *words, f"name={name}")).check()


def judge(ablation: Ablation, results: Measurements) -> list[JudgedContrast]:
    """The verdict on every main effect of the design, one family, then its interactions, another."""
    arms, contrasts = Arms.of(results), ablation.design.contrasts()
    main = [contrast for contrast in contrasts if len(contrast.factors) == 1]
    return [*arms.judge(main), *arms.judge([each for each in contrasts if each not in main])]


def conclude(ablation: Ablation, results: Measurements) -> None:
    """Write the verdicts, and a description of the design, beside the results."""
    values = {each.name: results.values(each.name).to_numpy(dtype=np.float64) for each in ablation.settings}
    verdicts.write(results, judge(ablation, results), ablation.design.standard_errors(values))
    write_text(results.folder / "design.txt", f"{ablation.design.describe()}\n")


def _default_factors(base: Settings, design: str) -> list[str]:
    on = [name for name in _on_off_switches(base) if _is_on(base.config[name]) and name not in _CONDITIONS]
    chosen = [name for name in _proposals() if name not in on] if design == "add_one" else on
    if not chosen:
        raise ConfigError(f"design={design} finds no switch to vary; name them with factors=[p1,p6]")
    return chosen


def _on_off_switches(base: Settings) -> list[str]:
    """The switches that can be on or off."""
    options = {group.name: {each.name for each in group.options} for group in catalogue.read().switches}
    pairs = [name for name, known in options.items() if {"on", "off"} <= known]
    return [name for name in pairs if isinstance(base.config.get(name), Mapping)]


def _proposals() -> list[str]:
    """The switches that the preset `all` turns on."""
    everything = next(each for each in catalogue.read().experiments if each.name == "all")
    return [override.removesuffix("=on") for override in everything.overrides if override.endswith("=on")]


def _is_on(node: Any) -> bool:
    """Whether a switch's configuration is on: a target, a number above 0, `true`, or a part that is on."""
    if isinstance(node, Mapping):
        return "_target_" in node or any(_is_on(item) for item in node.values())
    return node is True or (isinstance(node, (int, float)) and not isinstance(node, bool) and node > 0)
