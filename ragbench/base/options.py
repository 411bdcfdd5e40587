"""What a configuration can choose, declared with each class.

    @option("p6")                    # the switch p6: p6=on builds this class, p6.depth=20 sets a field
    @option("live=http")             # one option of the group live
    @option("p8.limit")              # a stage inside the switch p8
    @option("archive", before="cut") # a switch with its place in the pipeline
    @section("latency")              # a section of every configuration: latency.rounds=5

`ragbench.config.store` gives Hydra a schema of each. Nothing is imported or composed here.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

_Made = TypeVar("_Made", bound=Callable[..., Any])

ON, OFF = "on", "off"


@dataclass(frozen=True, eq=False)
class Option:
    """An option `group=name`: a class or function, whose parameters are keys below `package`.

    `inside` is the key below the group of one of several stages of a switch.
    """

    group: str
    name: str
    inside: str
    target: Callable[..., Any] | None
    package: str
    about: str
    plain: bool
    place: Mapping[str, str]
    values: Mapping[str, Any]

    @property
    def summary(self) -> str:
        """What the option does: `about`, else the first sentence of the docstring."""
        documented = "" if self.target is None else inspect.getdoc(self.target) or ""
        return self.about or " ".join(documented.partition("\n\n")[0].split())

    @property
    def key(self) -> str:
        """The key of its values, as `order` names it: `p8.limit`."""
        return f"{self.package}.{self.inside}".rstrip(".")


_options: dict[tuple[str, str, str], Option] = {}
_sections: dict[str, type] = {}


def option(
    name: str,
    about: str = "",
    /,
    *,
    package: str = "",
    plain: bool = False,
    before: str | None = None,
    after: str | None = None,
    **values: Any,
) -> Callable[[_Made], _Made]:
    """Make a class, or a loader of data, an option of the configuration.

    Args:
        name: `p6` for a switch, `p8.limit` for one of several stages in a switch, `live=http` for an option of a group.
        about: What the option does, in one sentence; the first of the docstring if empty.
        package: The key that holds its values, if it is not the group: `index.chunking`.
        plain: The option has the values alone, without the key `_target_` that names the class.
        before: The entry of `order` before which the stage runs; not needed for a stage that `order` names.
        after: The entry of `order` after which the stage runs.
        **values: Values by field that differ from the defaults of the class in this option, also `${other.key}`.
    """
    head, _, chosen = name.partition("=")
    group, _, inside = head.partition(".")
    place = {side: entry for side, entry in (("before", before), ("after", after)) if entry is not None}

    def register(target: _Made) -> _Made:
        made = Option(group, chosen or ON, inside, target, package or group, about, plain, place, values)
        _options[group, made.name, inside] = made
        return target

    return register


def values_option(name: str, about: str, values: Mapping[str, Any], *, package: str) -> None:
    """Add an option that is values without a class, such as a search space `tune=fuse`."""
    group, _, chosen = name.partition("=")
    _options[group, chosen, ""] = Option(group, chosen, "", None, package, about, True, {}, values)


def section(key: str) -> Callable[[_Made], _Made]:
    """Make a dataclass the section `key` of every configuration."""

    def register(cls: _Made) -> _Made:
        _sections[key] = cls  # type: ignore[assignment]
        return cls

    return register


def options() -> tuple[Option, ...]:
    """Every option that the imported modules declare."""
    return tuple(_options.values())


def replaces(target: str) -> tuple[str, ...]:
    """The entries of `order` that are excluded while a stage of the class with this dotted name is on."""
    return tuple(getattr(named(target), "replaces", ()))


def named(target: str) -> Callable[..., Any] | None:
    """The class of an option by its dotted name; None for one that no option has. Imports no more than is needed."""
    made = _with_name(target)
    if made is None and target.startswith("ragbench."):
        with suppress(ImportError):
            importlib.import_module(target.rpartition(".")[0])
        return _with_name(target)
    if made is None:
        from ragbench.base import registry

        registry.names("stage")  # imports the plug-ins
    return made or _with_name(target)


def _with_name(target: str) -> Callable[..., Any] | None:
    made = (option.target for option in _options.values() if option.target is not None)
    return next((cls for cls in made if dotted(cls) == target), None)


def dotted(target: Callable[..., Any]) -> str:
    """The name that a configuration has for a class: `ragbench.search.stages.cut.Cut`."""
    return f"{target.__module__}.{target.__qualname__}"


def sections() -> Mapping[str, type]:
    """By key the dataclass of every section that the imported modules declare."""
    return dict(_sections)
