"""The class that a node of the configuration names, and which classes the catalogue knows."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from ragbench.base import extensions
from ragbench.base.build import REPLACES, SOURCE_KINDS, TARGET, build
from ragbench.base.errors import ConfigError
from ragbench.config import catalogue
from ragbench.config.catalogue import SPECS


def make(node: Mapping[str, Any], label: str) -> Any:
    """Build the dataclass that `node['_target_']` names from the other keys of the node."""
    cls = class_named(str(node[TARGET]), f"{label}.{TARGET}")
    return build(cls, {key: value for key, value in node.items() if key not in (TARGET, REPLACES)}, label)


def class_named(path: str, label: str) -> type:
    """The dataclass of a dotted path, imported; `label` is the key that holds the path, for messages."""
    module_name, _, class_name = path.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError):
        raise ConfigError(f"{label} names {path}, which cannot be imported") from None
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise ConfigError(f"{label} names {path}, which is not a dataclass")
    return cls


def is_catalogued(target: str) -> bool:
    """Whether a class is named by a file of the configuration, or registered by an installed extension."""
    if target in SPECS.values() or target in SOURCE_KINDS.values() or target in catalogue.read().targets:
        return True
    stages = (extensions.find("stage", name) for name in extensions.names("stage"))
    return target in {f"{stage.__module__}.{stage.__qualname__}" for stage in stages}
