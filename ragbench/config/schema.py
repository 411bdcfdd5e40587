"""Checks a whole composed configuration before anything is built: its keys, then the values of every section.

The known keys are those of the configuration files (`Catalogue.tree`); the bounds of a value come from the dataclass
that its section becomes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragbench.base.bounds import Refused, shown
from ragbench.base.build import SOURCES, TARGET, build, value_at
from ragbench.base.suggestions import did_you_mean, nearest
from ragbench.benchmark import load
from ragbench.config.catalogue import SPECS, Catalogue, Tree
from ragbench.config.registry import class_named, make
from ragbench.config.sections import Basics

_ELSEWHERE = ("data",)  # built by a loader


def check(config: Mapping[str, Any], known: Catalogue, choices: Mapping[str, str]) -> None:
    """Raise Refused, or another ConfigError, for the first error.

    `choices` has the chosen option of every group: the keys of a switch that is off have no effect.
    """
    alone = {name: config[name] for name, below in known.tree.items() if below is None and name in config}
    basics = build(Basics, alone, "")
    if basics.primary is not None and basics.primary not in basics.measures:
        raise Refused("", "primary", f"must be one of measures, got {shown(basics.primary)}: add it to measures")
    added = _own_stages(config, known)
    _check_keys({key: node for key, node in config.items() if key not in added}, known.tree, "", known)
    for group, option in choices.items():
        _check_option(config.get(group), group, option, known)
    stages = (*_stage_keys(known.tree), *added, SOURCES, *known.absent)
    for entry in basics.order:
        _check_entry("", "order", entry, stages)
    if TARGET not in (value_at(config, ("index", "chunking")) or {}):
        raise Refused("index", "chunking", f"must name a class in {TARGET}")
    for section, target in SPECS.items():
        node = value_at(config, section.split("."))
        if node is None:
            raise Refused("", section, "is missing")
        if section not in _ELSEWHERE:
            build(class_named(target, section), node, section)
    for mode, node in config["modes"].items():
        for entry in node.get("without", ()):
            _check_entry(f"modes.{mode}", "without", entry, stages)
    load.check(config["data"])
    for path, node in _nodes_with_class(config, ""):
        make(node, path)


def _check_option(node: Any, group: str, option: str, known: Catalogue) -> None:
    """Raise Refused for a key that the option of a group does not have, or that has no effect because it is off."""
    if not isinstance(node, Mapping) or TARGET in node or group == "data":
        return  # a class or a loader knows its keys
    content = known.content(group, option)
    for leaf in _leaf_keys(node, ""):
        path = leaf.split(".")
        key = next((path[:n] for n in range(1, len(path)) if _subtree(known.tree[group], path[:n]) is None), path)
        if not _has_key(content, key) or (option == "off" and value_at(node, path) != value_at(content, path)):
            owners = [
                option
                for option in known.choices[group]
                if option != "off" and _has_key(known.content(group, option), key)
            ]
            remedy = f": add {' or '.join(f'{group}={option}' for option in owners)}" if owners else ""
            raise Refused(group, leaf, f"cannot be set with {group}={option}{remedy}")


def _has_key(node: Any, path: Sequence[str]) -> bool:
    return isinstance(node, Mapping) and path[0] in node and (len(path) == 1 or _has_key(node[path[0]], path[1:]))


def _subtree(tree: Tree | None, path: Sequence[str]) -> Tree | None:
    for part in path:
        tree = tree.get(part) if tree is not None else None
    return tree


def _check_keys(node: Mapping[str, Any], tree: Tree, path: str, known: Catalogue) -> None:
    for key in node:
        if key not in tree:
            raise Refused(path, str(key), _unknown_key(str(key), path, tree, known))
    for key, below in tree.items():
        if below is None:
            continue
        full_key, value = f"{path}.{key}".lstrip("."), node.get(key)
        if isinstance(value, Mapping):
            if full_key not in SPECS and full_key != "data" and TARGET not in value:
                _check_keys(value, below, full_key, known)
                if TARGET in below and value and full_key not in known.choices:
                    raise Refused(full_key, next(_leaf_keys(value, "")), f"has no effect: {full_key} is off")
        elif (key in node or not path) and (value is not None or full_key not in _stage_keys(known.tree)):
            inside = ", ".join(key for key in below if key != TARGET)
            raise Refused(path, key, f"must be a mapping with {inside or 'parameters'}, got {shown(value)}")


def _unknown_key(key: str, path: str, tree: Tree, known: Catalogue) -> str:
    siblings = [f"{path}.{name}".lstrip(".") for name in tree]
    full = f"{path}.{key}".lstrip(".")
    near = nearest(full, [*siblings, *(parameter.key for parameter in known.parameters)])
    return f"is unknown{did_you_mean(full, near) or ': `ragbench list parameters` shows all keys'}"


def _own_stages(config: Mapping[str, Any], known: Catalogue) -> list[str]:
    """The user's own stages: keys with a `_target_` that no file has. An arm may skip them of its `order`."""
    others = ((key, node) for key, node in config.items() if key not in known.tree)
    return [key for key, node in others if isinstance(node, Mapping) and TARGET in node]


def _check_entry(label: str, key: str, entry: str, stages: Sequence[str]) -> None:
    """Raise Refused for an entry of a list of stages that is not a stage, on or off."""
    if entry not in stages:
        raise Refused(label, key, f"names '{entry}', which is not a stage{did_you_mean(entry, stages, 'stages')}")


def _stage_keys(tree: Tree, path: str = "") -> Iterator[str]:
    """The keys that `order` may name: those of nodes with a `_target_`, outside the index."""
    for key, below in tree.items():
        if below is not None and (path or key != "index"):
            if TARGET in below:
                yield f"{path}{key}"
            yield from _stage_keys(below, f"{path}{key}.")


def _leaf_keys(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from _leaf_keys(value, f"{path}.{key}".lstrip("."))
    elif path:
        yield path


def _nodes_with_class(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every node with a `_target_`, and its key."""
    for key, value in node.items():
        full_key = f"{path}.{key}".lstrip(".")
        if isinstance(value, Mapping):
            if TARGET in value:
                yield full_key, value
            else:
                yield from _nodes_with_class(value, full_key)
