"""Hydra's view of the classes: a schema of each option and section in Hydra's ConfigStore, made by hydra-zen.

`register` runs when Hydra starts in a process that has imported ragbench (the plug-in `hydra_plugins`), so that
`hydra.compose` on `conf/` gives what `ragbench run` uses.
"""

from __future__ import annotations

import copy
import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragbench.base import options, registry
from ragbench.base.options import OFF, ON, Option, with_value
from ragbench.benchmark import load

SECTIONS = "sections"
"""The first entry of the defaults list: every section with the defaults of its class, and every switch that is off."""
DATA = "data"
CLASS = "class"
"""The group of the four stages that are on without a switch: `class@dense: RetrieveDense` in config.yaml."""
_SOURCES, _MADE_BY = "_sources", "made by"
_TYPED = (bool, int, float, str)


_registered: set[Option] = set()


def register() -> int:
    """Store the options and sections of all modules that declare some; returns a number that changes with them.

    Later calls add what was declared since, such as a stage in a cell of a notebook.
    """
    declared = _declared()
    if new := set(declared) - _registered:
        _share()
        for group in {option.group for option in new}:
            _store_group(group, [option for option in declared if option.group == group])
        _store(None, SECTIONS, _sections(), None)
        _registered.update(new)
    return hash(declared)


def _share() -> None:
    """Let the copy that Hydra makes of its store for each composition be the store, whose nodes it copies anyway."""
    from hydra.core.config_store import ConfigStore

    store: Any = ConfigStore.instance()
    store.__deepcopy__ = lambda memo: store


def _declared() -> tuple[Option, ...]:
    """Every option, after the modules that declare some were imported."""
    registry.import_all("options")
    registry.names("stage")  # imports the plug-ins
    return options.options()


def names(group: str) -> list[str]:
    """The options of classes in a group."""
    from hydra.core.config_store import ConfigStore

    return [file.removesuffix(".yaml") for file in ConfigStore.instance().list(group)]


def node(group: str, name: str) -> Any:
    """What is stored for an option of a class; None if nothing is."""
    from hydra.core.config_store import ConfigStore

    stored = ConfigStore.instance().repo.get(group, {}).get(f"{name}.yaml")
    return None if stored is None else copy.deepcopy(stored.node)


def stage_keys() -> tuple[str, ...]:
    """The keys of stages and of parts of them, such as `p8.limit`: options that name a class, outside the index."""
    named = (option for option in options.options() if option.target is not None and not option.plain)
    return tuple(option.key for option in named if option.group != CLASS and not option.key.startswith("index."))


def plain_options(chosen: Mapping[str, Any]) -> list[tuple[str, type]]:
    """The groups whose chosen option a class checks without being named in it, such as `topics=derived`."""
    declared = {(option.group, option.name) for option in options.options()}
    checked = []
    for option in options.options():
        name = str(chosen.get(option.group))
        given = name not in (option.name, OFF) and (option.group, name) in declared
        if option.plain and isinstance(option.target, type) and not given:
            checked.append((option.group, option.target))
    return checked


def _store_group(group: str, of_group: Sequence[Option]) -> None:
    by_name: dict[str, dict[str, Any]] = {}
    for option in of_group:
        by_name.setdefault(option.name, {})[option.inside] = schema_of(option)
    for name, nodes in by_name.items():
        _store(group, name, nodes.get("", nodes), of_group[0].package)
    if ON in by_name and OFF not in by_name:
        _store(group, OFF, {inside: None for inside in by_name[ON] if inside}, group)


def _sections() -> dict[str, Any]:
    switches = {option.group for option in options.options() if _is_of_ragbench(option)}
    nested = {group: off for group in sorted(switches) if (off := node(group, OFF)) is not None}
    for key, cls in options.sections().items():
        if not key:
            nested |= {field.name: _default(field) for field in dataclasses.fields(cls) if not _is_required(field)}
            continue
        nested = with_value(nested, key.split("."), schema(cls, named=False))
    return nested


def _is_of_ragbench(option: Option) -> bool:
    """Whether config.yaml names the switch: all but those of plug-ins, which name their place themselves."""
    return not option.place and (option.target is None or option.target.__module__.partition(".")[0] == "ragbench")


def schema_of(option: Option) -> Any:
    """The schema of an option: that of its class with the values that the option has; data also have a loader."""
    if option.target is None:
        return option.values
    own = schema(option.target, named=not option.plain, **option.values)
    if option.group != DATA:
        return own
    first = next(other.name for other in options.options() if other.target is option.target)
    loader = dataclasses.make_dataclass("Loader", [("loader", str, first)])
    bases = (loader, schema(load.DataSpec, named=False), own)
    made = dataclasses.make_dataclass(own.__name__, [], bases=bases)
    return _with_sources(made, load.DataSpec, option.target)


def schema(target: Callable[..., Any], *, named: bool = True, **values: Any) -> Any:
    """A structured configuration of a class: each field with its type and default, and `_target_` unless not `named`.

    A field without a default is null until it is set. Fields that the program fills are excluded.
    """
    from hydra_zen import builds

    own = (
        [field.name for field in dataclasses.fields(target) if _MADE_BY in field.metadata]
        if isinstance(target, type)
        else ["topics"]
    )
    made = builds(target, populate_full_signature=True, zen_exclude=own, **values)
    fields: list[tuple[str, Any, Any]] = []
    for field in dataclasses.fields(made):
        if field.name == "_target_" and not named:
            continue
        if field.default == "???" or _is_required(field):
            fields.append((field.name, Any, None))
        elif field.default_factory is not dataclasses.MISSING:
            fields.append((field.name, field.type, dataclasses.field(default_factory=field.default_factory)))
        else:
            fields.append((field.name, _typed(field.type), field.default))
    return _with_sources(dataclasses.make_dataclass(target.__name__, fields), target)


def sources_of(made: type | None) -> tuple[Callable[..., Any], ...]:
    """The classes or functions that a schema was made of; none for other types."""
    return tuple(getattr(made, _SOURCES, ()))


def _with_sources(made: Any, *sources: Callable[..., Any]) -> Any:
    setattr(made, _SOURCES, sources)
    return made


def _typed(hint: Any) -> Any:
    """The type of a plain value or null; Any for all others, which the class itself checks."""
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return hint if all(part in (*_TYPED, types.NoneType) for part in parts) and len(parts) <= 2 else Any


def _store(group: str | None, name: str, node: Any, package: str | None) -> None:
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(name=name, node=node, group=group, package=package, provider="ragbench")


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
