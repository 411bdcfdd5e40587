"""The permissions that a configuration needs, and whether its caller has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragbench.base.build import TARGET, build, value_at
from ragbench.boundary.permissions import Capability, needs_below
from ragbench.config.catalogue import SPECS
from ragbench.config.registry import class_named
from ragbench.config.settings import Settings

_DATA = {
    "url": Capability.SENDS,
    "cache": Capability.WRITES,
    **dict.fromkeys(("corpus", "queries", "qrels", "folder", "docs", "topics"), Capability.READS),
}
"""Options of the loaders, which are functions and have no fields."""

_Needed = Mapping[str, tuple[Capability, Any]]
"""By key, what its value needs, and the value."""


def needs_of_search(settings: Settings) -> _Needed:
    """All that is not pure in a pipeline and its index. Builds dataclasses, reads no file and sends no request."""
    needs = [need for name, stage in settings.pipeline for need in needs_below(stage, name)]
    needs += needs_below(settings.index, "index")
    return {key: (need, value) for key, need, value in needs}


def needs_of(settings: Settings) -> _Needed:
    """The same of a whole configuration: also its data, its folders and its services."""
    needs: list[tuple[str, Capability, Any]] = []
    for section, target in SPECS.items():
        node = value_at(settings.config, section.split("."))
        if isinstance(node, Mapping):
            needs += needs_below(build(class_named(target, section), node, section), section)
    data = settings.config.get("data") or {}
    needs += [(f"data.{key}", need, data[key]) for key, need in _DATA.items() if data.get(key)]
    return {**needs_of_search(settings), **{key: (need, value) for key, need, value in needs}}


def why_not_plain(override: str) -> str:
    """What a word does while it is composed; empty for one that only sets a value or chooses an option."""
    key = override.partition("=")[0]
    if TARGET in override or "_partial_" in override or key.lstrip("+~").startswith("hydra"):
        return "names code to import"
    return "has a ${...}, which can read the environment" if "${" in override else ""
