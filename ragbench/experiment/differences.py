"""What configurations differ in, from each other and from the defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragbench.base.options import flat
from ragbench.config import available
from ragbench.config.available import Available
from ragbench.config.names import EXPERIMENT
from ragbench.config.overrides import key_of, section_of
from ragbench.config.sections import AROUND

_ABSENT = object()


def of_arms(arms: Mapping[str, tuple[Sequence[str], Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """By arm, its options and values that are not the defaults, and every one in which the arms differ.

    `arms`: the overrides and the composed configuration of each.
    """
    known = available.read()
    overrides = {arm: typed for arm, (typed, _) in arms.items()}
    options = {arm: _chosen(known, overrides[arm]) for arm in arms}
    values = {arm: _measured(flat(config)) for arm, (_, config) in arms.items()}
    usual = known.values
    varied = _varied(values) - set(known.defaults)
    chosen = {
        group
        for group, default in _measured(known.defaults).items()
        if any(of_arm[group] != default for of_arm in options.values())
    }
    by_arm: dict[str, dict[str, Any]] = {}
    for arm in arms:
        off = {group for group, option in options[arm].items() if option == "off"}
        differing = {
            key: value
            for key, value in values[arm].items()
            if key in varied or (usual.get(key, value) != value and value is not None and section_of(key) not in off)
        }
        classes = {key for key in differing if key.endswith("._target_") and section_of(key) in chosen}
        typed = {override.lstrip("+").partition("=")[0]: override.partition("=")[2] for override in overrides[arm]}
        by_arm[arm] = {group: options[arm][group] for group in chosen}
        by_arm[arm] |= {key: value for key, value in differing.items() if key not in classes}
        by_arm[arm] |= _measured(typed)
    return by_arm


def _measured(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values by key that have a part in what is measured."""
    return {key: value for key, value in values.items() if section_of(key) not in AROUND}


def _varied(values: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The keys that some arm lacks or in which arms have different values."""
    keys = {key for arm_values in values.values() for key in arm_values}
    return {key for key in keys if len({repr(arm_values.get(key, _ABSENT)) for arm_values in values.values()}) > 1}


def _chosen(known: Available, overrides: Iterable[str]) -> dict[str, str]:
    """The chosen option of every group."""
    typed = {key_of(override): override.partition("=")[2].strip("\"'") for override in overrides}
    preset = typed.get(EXPERIMENT)
    chosen = known.preset(preset).options if preset in known.by_group[EXPERIMENT] else {}
    return {**known.defaults, **chosen, **{key: value for key, value in typed.items() if key in known.defaults}}
