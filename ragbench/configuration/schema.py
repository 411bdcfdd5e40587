"""The whole of a composed configuration, checked before anything is built: its keys, then the values of every section.

What may stand where is read from the configuration files themselves (`Catalogue.tree`); what a value may be, from the
dataclass that the section becomes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragbench.benchmark import load
from ragbench.bounds import Refused, shown
from ragbench.catalogue import SPECS, Catalogue, Tree
from ragbench.configuration.build import SOURCES, TARGET, at, build, make, named
from ragbench.configuration.sections import Basics
from ragbench.suggestions import did_you_mean, nearest

_ELSEWHERE = ("data",)  # built by a loader


def check(config: Mapping[str, Any], known: Catalogue, choices: Mapping[str, str]) -> None:
    """Raise Refused, or another ConfigError, for the first thing that is wrong.

    `choices` has the option of every group that was taken: the keys of a switch that is off have no effect.
    """
    alone = {name: config[name] for name, below in known.tree.items() if below is None and name in config}
    basics = build(Basics, alone, "")
    if basics.primary is not None and basics.primary not in basics.measures:
        raise Refused("", "primary", f"must be one of measures, got {shown(basics.primary)}: add it to measures")
    added = _added(config, known)
    _check_keys({key: node for key, node in config.items() if key not in added}, known.tree, "", known)
    for group, option in choices.items():
        _check_option(config.get(group), group, option, known)
    for entry in basics.order:
        _check_entry(entry, (*_stages(known.tree), *added, SOURCES))
    if TARGET not in (at(config, ("index", "chunking")) or {}):
        raise Refused("index", "chunking", f"must name a class in {TARGET}")
    for section, target in SPECS.items():
        node = at(config, section.split("."))
        if node is None:
            raise Refused("", section, "is missing")
        if section not in _ELSEWHERE:
            build(named(target, section), node, section)
    load.check(config["data"])
    for path, node in _made(config, ""):
        make(node, path)


def _check_option(node: Any, group: str, option: str, known: Catalogue) -> None:
    """Raise Refused for a key that the option of a group does not have, or sets to nothing because it is off."""
    if not isinstance(node, Mapping) or TARGET in node or group == "data":
        return  # a class or a loader knows its keys
    said = known.content(group, option)
    for leaf in _leaves(node, ""):
        path = leaf.split(".")
        key = next((path[:n] for n in range(1, len(path)) if _below(known.tree[group], path[:n]) is None), path)
        if not _has(said, key) or (option == "off" and at(node, path) != at(said, path)):
            owners = [each for each in known.choices[group] if each != "off" and _has(known.content(group, each), key)]
            remedy = f": add {' or '.join(f'{group}={each}' for each in owners)}" if owners else ""
            raise Refused(group, leaf, f"cannot be set with {group}={option}{remedy}")


def _has(node: Any, path: Sequence[str]) -> bool:
    return isinstance(node, Mapping) and path[0] in node and (len(path) == 1 or _has(node[path[0]], path[1:]))


def _below(tree: Tree | None, path: Sequence[str]) -> Tree | None:
    for part in path:
        tree = tree.get(part) if tree is not None else None
    return tree


def _check_keys(node: Mapping[str, Any], tree: Tree, path: str, known: Catalogue) -> None:
    for key in node:
        if key not in tree:
            raise Refused(path, str(key), _unknown(str(key), path, tree, known))
    for key, below in tree.items():
        if below is None:
            continue
        where, value = f"{path}.{key}".lstrip("."), node.get(key)
        if isinstance(value, Mapping):
            if where not in SPECS and where != "data" and TARGET not in value:
                _check_keys(value, below, where, known)
                if TARGET in below and value and where not in known.choices:
                    raise Refused(where, next(_leaves(value, "")), f"has no effect: {where} is off")
        elif (key in node or not path) and (value is not None or where not in _stages(known.tree)):
            inside = ", ".join(each for each in below if each != TARGET)
            raise Refused(path, key, f"must be a mapping with {inside or 'parameters'}, got {shown(value)}")


def _unknown(key: str, path: str, tree: Tree, known: Catalogue) -> str:
    here = [f"{path}.{name}".lstrip(".") for name in tree]
    full = f"{path}.{key}".lstrip(".")
    near = nearest(full, [*here, *(each.key for each in known.parameters)])
    return f"is unknown{did_you_mean(full, near) or ': `ragbench config` shows all keys'}"


def _added(config: Mapping[str, Any], known: Catalogue) -> list[str]:
    """Stages of one's own: keys of no file that name a class. An arm need not have them in its `order`."""
    others = ((key, node) for key, node in config.items() if key not in known.tree)
    return [key for key, node in others if isinstance(node, Mapping) and TARGET in node]


def _check_entry(entry: str, stages: Sequence[str]) -> None:
    """Raise Refused for an entry of `order` that can be no stage, on or off."""
    if entry not in stages:
        raise Refused("", "order", f"names '{entry}', which is no stage{did_you_mean(entry, stages, 'stages')}")


def _stages(tree: Tree, path: str = "") -> Iterator[str]:
    """What `order` may name: the keys of nodes that name a class, outside the index."""
    for key, below in tree.items():
        if below is not None and (path or key != "index"):
            if TARGET in below:
                yield f"{path}{key}"
            yield from _stages(below, f"{path}{key}.")


def _leaves(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _leaves(value, f"{path}.{key}".lstrip("."))
    elif path:
        yield path


def _made(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every node that names a class, with its key."""
    for key, value in node.items():
        where = f"{path}.{key}".lstrip(".")
        if isinstance(value, Mapping):
            if TARGET in value:
                yield where, value
            else:
                yield from _made(value, where)
