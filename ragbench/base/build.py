"""Builds the dataclass that a node of the configuration stands for, also of a class that it names."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ragbench.base import options
from ragbench.base.errors import ConfigError, did_you_mean
from ragbench.base.options import Refused, check_field, dataclass_in, shown

_T = TypeVar("_T")

TARGET = "_target_"
"""The key of a node that names its class."""
SOURCES = "sources"
"""The key of further sources by name, and the entry of `order` that stands for them."""
SOURCE_KINDS = {
    "dense": "ragbench.search.stages.retrieve.RetrieveDense",
    "lexical": "ragbench.search.stages.retrieve.RetrieveLexical",
}
"""The classes of further sources, by `kind`."""


def build(cls: type[_T], values: Mapping[str, Any], label: str) -> _T:
    """Build a dataclass, and the dataclasses in its fields, from plain values; `label` is the key of the values.

    Raises Refused for an unknown or missing key and for a value that its field cannot have.
    """
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            names = [f"{label}.{name}" for name in fields]
            raise Refused(label, str(key), f"is unknown{did_you_mean(f'{label}.{key}', names, 'keys')}")
    for name, field in fields.items():
        if name not in values and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Refused(label, name, "is missing")
    built = {
        name: build(inner, value, f"{label}.{name}")
        if isinstance(value, Mapping) and (inner := dataclass_in(cls, name))
        else value
        for name, value in values.items()
    }
    try:
        return cls(**{name: check_field(cls, name, built[name]) for name in fields if name in built})
    except Refused as refusal:
        raise Refused(label, refusal.key, refusal.reason) from None


def make(node: Mapping[str, Any], label: str) -> Any:
    """Build the dataclass that `node['_target_']` names from the other keys of the node."""
    cls = _class_named(str(node[TARGET]), f"{label}.{TARGET}")
    return build(cls, {key: value for key, value in node.items() if key != TARGET}, label)


def _class_named(path: str, label: str) -> type:
    """The dataclass of a dotted path, imported; `label` is the key that holds the path, for messages."""
    module_name, _, class_name = path.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError):
        remedy = "correct it, or repeat the run if an earlier version wrote it"
        raise ConfigError(f"{label} names {path}, which cannot be imported: {remedy}") from None
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise ConfigError(f"{label} names {path}, which is not a dataclass")
    return cls


def active(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The entries of `order` that are on and that no stage replaces, with their configuration.

    A class says in `replaces` which entries are excluded while its stage is on; `*` is all others.
    """
    nodes = dict(_entries_of_order(config))
    on = {entry: node for entry, node in nodes.items() if isinstance(node, Mapping) and TARGET in node}
    replaces = {entry: options.replaces(str(node[TARGET])) for entry, node in on.items()}
    alone = [entry for entry, others in replaces.items() if "*" in others]
    replaced = {other for others in replaces.values() for other in others}
    for entry in alone or on:
        if entry not in replaced:
            yield entry, on[entry]


def _entries_of_order(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every entry of `order` with its configuration; `sources` is replaced by the sources in it."""
    for entry in map(str, config["order"]):
        if entry != SOURCES:
            yield entry, value_at(config, entry.split("."))
            continue
        for name, node in sorted((config.get(SOURCES) or {}).items()):
            kind = node.get("kind") if isinstance(node, Mapping) else None
            if kind not in SOURCE_KINDS:
                raise Refused(f"{SOURCES}.{name}", "kind", f"must be {' or '.join(SOURCE_KINDS)}, got {shown(kind)}")
            parameters = {key: value for key, value in node.items() if key != "kind"}
            yield f"{SOURCES}.{name}", {**parameters, TARGET: SOURCE_KINDS[kind], "source": name}


def value_at(node: Any, keys: Sequence[str]) -> Any:
    """The value below a node at a path of keys, None when there is none."""
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def with_value(node: Any, keys: Sequence[str], value: Any) -> dict[str, Any]:
    """The node with a value at a path of keys, with mappings on the way where there are none."""
    changed, (key, *below) = dict(node or {}), keys
    changed[key] = with_value(changed.get(key), below, value) if below else value
    return changed


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one level with dotted keys."""
    flattened: dict[str, Any] = {}
    for key, value in config.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            flattened |= flat(value, f"{path}.")
        else:
            flattened[path] = value
    return flattened
