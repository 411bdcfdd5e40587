"""The changes that the atlas knows, by name and by the overrides that make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from ragbench.boundary.yaml import read_yaml_file

BASE = "plain_hybrid"
BASES = (BASE, "baseline", "recommended")
"""What effects are measured against: all changes against the first, presets also against the others."""
ORDER, WITHOUT = "ranker=questions", "-without-"
"""The order that was learned from questions, and what follows its name if a site was held out (`fit ranker`)."""
EARLIER = "earlier"
"""The group of changes whose presets have other values now: no prediction is made from them."""
_FILE = Path(__file__).with_name("changes.yaml")
_SHARED = frozenset(
    {
        *("name", "data", "topics", "split", "seed", "latency", "tracking", "paths", "execution", "statistics"),
        *("budget", "links", "artefacts", "measures", "primary", "context_tokens", "design", "tune"),
    }
)
"""Sections of overrides that do not make the pipeline."""


@cache
def groups() -> Mapping[str, Mapping[str, str]]:
    """Overrides by name of the change, in groups that are measured together; later groups cost more."""
    groups_read = read_yaml_file(_FILE)
    return {
        str(group): {str(name): str(overrides) for name, overrides in group_changes.items()}
        for group, group_changes in groups_read.items()
    }


@cache
def changes() -> Mapping[str, str]:
    """The overrides of every change by name, the base among them."""
    return {name: overrides for group in groups().values() for name, overrides in group.items()}


@cache
def _names() -> Mapping[frozenset[str], str]:
    earlier = groups().get(EARLIER, {})
    return {key(overrides.split()): name for name, overrides in changes().items() if name not in earlier}


def key(overrides: Iterable[str]) -> frozenset[str]:
    """What words make of the pipeline: without those on data, files and measuring; no preset is the baseline.

    The order that was learned without a site is, on this site, the change that the order is.
    """
    kept_overrides = {override.lstrip("+") for override in overrides}
    kept_overrides = {
        override for override in kept_overrides if override.partition("=")[0].partition(".")[0] not in _SHARED
    }
    if others := {override for override in kept_overrides if override.startswith(f"{ORDER}{WITHOUT}")}:
        kept_overrides = kept_overrides - others | ({ORDER} if "exp=recommended" not in kept_overrides else set())
    if not any(override.startswith("exp=") for override in kept_overrides):
        kept_overrides.add("exp=baseline")
    return frozenset(kept_overrides)


def name_of(overrides: Iterable[str]) -> str | None:
    """The change that these overrides make, None where the atlas does not know it."""
    return _names().get(key(overrides))


def has_ranker(name: str) -> bool:
    """Whether a change ranks by the order that was learned from questions about other documentation."""
    overrides = changes().get(name, "").split()
    return ORDER in overrides or ("exp=recommended" in overrides and "ranker=off" not in overrides)


def name_on_base(base: Iterable[str], arm: Iterable[str]) -> str | None:
    """The change that is known on `BASE` by the words that an arm adds to its base, None where there is none."""
    base_key, arm_key = key(base), key(arm)
    if not base_key < arm_key:
        return None
    return _names().get((arm_key - base_key) | key(changes()[BASE].split()))
