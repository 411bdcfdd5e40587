"""The classes that a configuration may name where importing others is not granted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ragbench import catalogue, extensions
from ragbench.catalogue import SPECS

SOURCE_KINDS = {"dense": "ragbench.stages.dense.RetrieveDense", "lexical": "ragbench.stages.lexical.RetrieveLexical"}
"""The classes of further sources, by `kind`."""


def is_catalogued(target: str) -> bool:
    """Whether a class is named by a file of the configuration, or registered by an installed extension."""
    if target in SPECS.values() or target in SOURCE_KINDS.values() or target in _targets(catalogue.read().version):
        return True
    stages = (extensions.find("stage", name) for name in extensions.names("stage"))
    return target in {f"{each.__module__}.{each.__qualname__}" for each in stages}


@lru_cache(maxsize=4)
def _targets(version: Sequence[object]) -> frozenset[str]:
    known = catalogue.read()
    of_groups = {target for group in known.groups for option in group.options for target in option.targets}
    return frozenset(of_groups | set(known.targets))
