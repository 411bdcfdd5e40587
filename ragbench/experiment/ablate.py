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
from ragbench.search.engine.pipeline import MissingInput

if TYPE_CHECKING:
    from ragbench.results.measurements import Measurements

_CONDITIONS = ("calibration", "filters", "hyde", "recency")
"""Switches that are varied only when `factors` names them: they are the conditions of a search."""


@dataclass(frozen=True)
class Ablation:
    """A design with the settings of its arms, in the design's order; `notes` are sentences about its factors."""

    design: Design
    settings: tuple[Settings, ...]
    notes: tuple[str, ...] = ()


Candidates = Mapping[str, Sequence[str]]
"""Overrides by name that are added to the base together, as one factor."""


def plan(
    base: Settings, compose: Callable[[Sequence[str]], Settings], candidates: Candidates | None = None
) -> Ablation:
    """The arms that `base` asks for by `design`, `factors` and `design_options`; `candidates` are factors as well.

    `compose` turns overrides into settings. Without `factors` and candidates: the switches that are on in the base; for
    add_one those that the preset `all` turns on and the base does not. A switch that needs another one which is off
    becomes a factor that turns on both and has both in its name, such as `p10_with_calibration`.
    """
    candidates, name = dict(candidates or {}), str(base.config["design"])
    factors = base.config["factors"] or ([] if candidates else _default_factors(base, name))
    if isinstance(factors, str):
        raise ConfigError(f"factors must be a list such as [p1,p6], got {factors}")
    for factor in factors:
        if factor not in base.config or not isinstance(base.config[factor], Mapping):
            raise ConfigError(f"factor '{factor}' is not a switch; switches: {', '.join(_on_off_switches(base))}")
    if taken := next((each for each in candidates if each in base.config), None):
        raise ConfigError(f"--arm {taken} has the name of a key of the configuration: give it another name")
    switches, notes = [str(factor) for factor in factors], []
    flipped = _flipped(base, switches, compose)
    for factor in flipped:
        missing = _missing_input(base, factor, flipped)
        if missing is None:
            continue
        both = f"{factor}_with_{_needed(missing, switches)}"
        switches = [both if each == factor else each for each in switches]
        candidates[both] = (f"{factor}=on", missing.override)
        notes.append(
            f"{factor} needs {missing.meaning}: the factor {both} is {factor}=on {missing.override}, and its effect is "
            "that of both"
        )
    names = [*switches, *(each for each in candidates if each not in switches)]
    design = design_named(name, names, **base.config["design_options"])
    arms = {}
    for arm, states in design.arms().items():
        added = [word for each, words in candidates.items() if states[each] for word in words]
        start = compose([*base.overrides, *added]) if added else base
        arms[arm] = _arm(start, arm, {each: on for each, on in states.items() if each not in candidates}, flipped)
    return Ablation(design, tuple(arms.values()), tuple(notes))


def _needed(missing: MissingInput, switches: Sequence[str]) -> str:
    """The switch that provides what is missing; ConfigError if the design varies it."""
    needed = section_of(missing.override)
    if needed in switches:
        raise ConfigError(f"{missing}, so '{needed}' cannot be a factor of the same design: omit one of the two")
    return needed


def _missing_input(base: Settings, factor: str, flipped: Mapping[str, Any]) -> MissingInput | None:
    """What the base lacks for a switch that is off in it; None if nothing, or if no override is known to add it."""
    if _is_on(base.config[factor]):
        return None
    try:
        _arm(base, factor, {factor: True}, flipped)
    except MissingInput as missing:
        return missing if missing.override else None
    return None


def _flipped(base: Settings, factors: Sequence[str], compose: Callable[[Sequence[str]], Settings]) -> Mapping[str, Any]:
    """The configuration of every factor with its switch flipped; None for one that is then not there.

    All are composed at once, as a composition takes a third of a second.
    """
    rest = [each for each in base.overrides if section_of(each) not in factors]
    other = [f"{factor}={'off' if _is_on(base.config[factor]) else 'on'}" for factor in factors]
    try:
        composed = compose([*rest, *other]).config
    except MissingInput as missing:
        if not missing.override:
            raise
        _needed(missing, factors)
        composed = compose([*rest, *other, missing.override]).config
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
    """Write the verdicts, and a description of the design, next to the results."""
    values = {each.name: results.values(each.name).to_numpy(dtype=np.float64) for each in ablation.settings}
    verdicts.write(results, judge(ablation, results), ablation.design.standard_errors(values))
    sentences = [ablation.design.describe(), *(f"{note[0].upper()}{note[1:]}." for note in ablation.notes)]
    write_text(results.folder / "design.txt", "".join(f"{sentence}\n" for sentence in sentences))


def _default_factors(base: Settings, design: str) -> list[str]:
    on = [name for name in _on_off_switches(base) if _is_on(base.config[name]) and name not in _CONDITIONS]
    chosen = [name for name in _proposals() if name not in on] if design == "add_one" else on
    if not chosen:
        raise ConfigError(f"design={design} finds no switch to vary: add exp=all, or factors=[p1,p6]")
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
