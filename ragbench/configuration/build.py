"""A node of the configuration as the dataclass it stands for."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ragbench.bounds import Refused, checked, dataclass_in, shown
from ragbench.errors import ConfigError
from ragbench.suggestions import did_you_mean

T = TypeVar("T")

TARGET = "_target_"
"""The key of a node that names the class it stands for."""
REPLACES = "_replaces_"
"""In a stage's configuration: entries of `order` that are passed over while this stage is on; `*` is all others."""

SOURCES = "sources"
"""The key, and the entry of `order`, of further sources by name."""

_KINDS = {"dense": "ragbench.stages.dense.RetrieveDense", "lexical": "ragbench.stages.lexical.RetrieveLexical"}


def make(node: Mapping[str, Any], where: str) -> Any:
    """Build the dataclass that `node['_target_']` names from the other keys of the node."""
    cls = named(str(node[TARGET]), f"{where}.{TARGET}")
    return build(cls, {key: value for key, value in node.items() if key not in (TARGET, REPLACES)}, where)


def named(path: str, where: str) -> type:
    """The dataclass of a dotted path, which stands at `where`."""
    module_name, _, class_name = path.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError):
        raise ConfigError(f"{where} names {path}, which cannot be imported") from None
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise ConfigError(f"{where} names {path}, which is not a dataclass")
    return cls


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Build a dataclass, and those it holds, from plain values. `where` is their key; ConfigError if one does not fit.

    Refused names a field that cannot have its value; unknown and missing keys are named with the nearest known one.
    """
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            names = [f"{where}.{name}" for name in fields]
            raise Refused(where, str(key), f"is unknown{did_you_mean(f'{where}.{key}', names, 'keys')}")
    for name, field in fields.items():
        if name not in values and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Refused(where, name, "is missing")
    built = {
        name: build(inner, value, f"{where}.{name}")
        if isinstance(value, Mapping) and (inner := dataclass_in(cls, name))
        else value
        for name, value in values.items()
    }
    try:
        return cls(**{name: checked(cls, name, built[name]) for name in fields if name in built})
    except Refused as refusal:
        raise Refused(where, refusal.key, refusal.reason) from None


def active(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The entries of `order` that are on and not replaced by another, with their configuration."""
    nodes = dict(_entries(config))
    on = {entry: node for entry, node in nodes.items() if isinstance(node, Mapping) and TARGET in node}
    alone = {entry: node for entry, node in on.items() if "*" in node.get(REPLACES, ())}
    replaced = {name for node in on.values() for name in node.get(REPLACES, ())}
    return ((entry, node) for entry, node in (alone or on).items() if entry not in replaced)


def _entries(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every entry of `order` with its configuration, in place of `sources` every source in it."""
    for entry in map(str, config["order"]):
        if entry != SOURCES:
            yield entry, at(config, entry.split("."))
            continue
        for name, node in sorted((config.get(SOURCES) or {}).items()):
            kind = node.get("kind") if isinstance(node, Mapping) else None
            if kind not in _KINDS:
                raise Refused(f"{SOURCES}.{name}", "kind", f"must be {' or '.join(_KINDS)}, got {shown(kind)}")
            given = {key: value for key, value in node.items() if key != "kind"}
            yield f"{SOURCES}.{name}", {**given, TARGET: _KINDS[kind], "source": name}


def at(node: Any, keys: Sequence[str]) -> Any:
    """What lies below a node under keys, None where there is nothing."""
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node
