"""The class that a node of the configuration names, and which classes ragbench knows."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from ragbench.base import options
from ragbench.base.build import TARGET, build
from ragbench.base.errors import ConfigError


def make(node: Mapping[str, Any], label: str) -> Any:
    """Build the dataclass that `node['_target_']` names from the other keys of the node."""
    cls = class_named(str(node[TARGET]), f"{label}.{TARGET}")
    return build(cls, {key: value for key, value in node.items() if key != TARGET}, label)


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


def is_configured(target: str) -> bool:
    """Whether a class is named by a file of the configuration, or registered by an installed extension."""
    return options.named(target) is not None
