"""What a configuration can choose, declared with each class, and how its nodes become objects.

    @option("p6")                    # the switch p6: p6=on builds this class, p6.depth=20 sets a field
    @option("live=http")             # one option of the group live
    @option("p8.limit")              # a stage inside the switch p8
    @option("archive", before="cut") # a switch with its place in the pipeline
    @section("latency")              # a section of every configuration: latency.rounds=5

The values of its fields have bounds, written as types and checked whenever an object is made:

    @dataclass(frozen=True)
    class Rerank(Validated):
        depth: Count = 10

`Rerank(depth=0)` raises ConfigError: "Rerank.depth must be at least 1, got 0". The configuration is checked by the same
types (`ragbench.config`), under the key that holds the value: "p6.depth must be at least 1, got 0".

`ragbench.config.store` gives Hydra a schema of each option. Nothing is imported or composed here.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Interval, Le, Lt

from ragbench.base.types import ConfigError, did_you_mean, shown

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema, ErrorDetails


_Made = TypeVar("_Made", bound=Callable[..., Any])
_T = TypeVar("_T")

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
    """By key the dataclass of every section that the imported modules declare, in the order of the modules."""
    return dict(sorted(_sections.items(), key=lambda section: section[1].__module__))  # that of imports varies


@dataclass(frozen=True)
class Constraint:
    """A condition on a value, and the words that follow its key when it fails: `must not be blank`."""

    condition: Callable[[Any], bool]
    description: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The check as pydantic runs it, after the check of the type."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, value: Any) -> Any:
        from pydantic_core import PydanticCustomError

        if not self.condition(value):
            raise PydanticCustomError("holds", "{words}", {"words": self.description})
        return value


def one_of(*known: str) -> Constraint:
    """The condition that a text is one of these."""
    return Constraint(lambda value: value in known, f"must be one of {', '.join(known)}")


Count = Annotated[int, Ge(1)]
Natural = Annotated[int, Ge(0)]
Seed = Annotated[int, Interval(ge=0, lt=2**32)]
Share = Annotated[float, Interval(ge=0, le=1)]
Confidence = Annotated[float, Interval(gt=0.5, lt=1)]
Cosine = Annotated[float, Interval(ge=-1, le=1)]
Weight = Annotated[float, Ge(0)]
Factor = Annotated[float, Ge(1)]
Positive = Annotated[float, Gt(0)]
Name = Annotated[str, Constraint(lambda text: bool(text.strip()), "must not be blank")]
Prompt = Annotated[str, Constraint(lambda text: "{query}" in text, "must hold {query} where the query belongs")]


class Refused(ConfigError):
    """A value that cannot be used: the `key` that holds it, relative to `owner`, and the `reason`."""

    def __init__(self, owner: str, key: str, reason: str) -> None:
        super().__init__(f"{owner}.{key} {reason}" if owner else f"{key} {reason}")
        self.key, self.reason = key, reason


class Validated:
    """Base of frozen dataclasses whose field types state the bounds of their values; checked when one is made.

    A list becomes a tuple and a whole number a float where the type requires it. A class with rules between its fields
    extends `__post_init__` and raises the error that `refused` returns.
    """

    def __post_init__(self) -> None:
        """Check every field. Raises Refused, a ConfigError."""
        for name in _fields(type(self)):  # type: ignore[arg-type]  # a class can be hashed
            try:
                value = check_field(type(self), name, getattr(self, name))
            except Refused as refusal:
                raise self.refused(refusal.key, refusal.reason) from None
            object.__setattr__(self, name, value)

    def refused(self, key: str, reason: str) -> Refused:
        """The error that says why a field cannot have its value: `self.refused("high", "must be above low")`."""
        return Refused(type(self).__name__, key, reason)


@contextmanager
def as_options() -> Iterator[None]:
    """Raise Refused from inside the block with the option of the command: `--max-top must be at least 1, got 0`."""
    try:
        yield
    except Refused as refusal:
        raise Refused("", f"--{refusal.key.replace('_', '-')}", refusal.reason) from None


def check_field(cls: Callable[..., Any], name: str, value: Any) -> Any:
    """The value in the type of a dataclass's field, or of a function's parameter. Raises Refused, with no owner."""
    from pydantic import ValidationError

    try:
        # Strict: "10" is not a number and 1 is not a truth value. Lists may stand for tuples.
        return _adapter(cls, name).validate_python(_lists_to_tuples(value), strict=True)
    except ValidationError as error:
        key, reason = _key_and_reason(error.errors(include_url=False)[0], _hints(cls)[name], name, value)
        raise Refused("", key, reason) from None


def dataclass_in(cls: type, name: str) -> type | None:
    """The dataclass that a field holds (or null); None when the field holds anything else."""
    inner = _without_null(_hints(cls)[name])[0]
    return inner if isinstance(inner, type) and dataclasses.is_dataclass(inner) else None


@cache
def _hints(cls: Callable[..., Any]) -> Mapping[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)


@cache
def _fields(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls) if field.init)


@cache
def _adapter(cls: Callable[..., Any], name: str) -> TypeAdapter[Any]:
    """The checker of a field's values, cached: making it takes longer than checking."""
    from pydantic import ConfigDict, TypeAdapter

    hint = _hints(cls)[name]
    if dataclasses.is_dataclass(hint):  # its own fields were checked when it was made
        return TypeAdapter(hint)
    return TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False, arbitrary_types_allowed=True))


def _lists_to_tuples(value: Any) -> Any:
    return tuple(map(_lists_to_tuples, value)) if isinstance(value, (list, tuple)) else value


def _key_and_reason(error: ErrorDetails, hint: Any, key: str, value: Any) -> tuple[str, str]:
    """The key of the offending part, and what it must be."""
    places = error["loc"]
    if places[-1:] == ("[key]",):
        keys = typing.get_args(_without_annotations(_without_null(hint)[0])[0])[0]
        must = error.get("ctx", {}).get("words") or f"must be {_type_in_words(keys)}"
        return key, f"names '{places[-2]}', which {must}"
    for field in places:
        inner = _element_type(hint)
        if inner is None or (error["type"] == "missing" and field == places[-1]):
            break
        hint, key, value = inner, f"{key}.{field}" if isinstance(field, str) else f"{key}[{field}]", value[field]
    return key, f"{_requirement(error, hint)}, got {shown(value)}"


def _requirement(error: ErrorDetails, hint: Any) -> str:
    context, kind = error.get("ctx", {}), error["type"]
    if "words" in context:
        return str(context["words"])
    for end, phrase in (("min_length", "at least"), ("max_length", "at most")):
        if end in context:
            return f"must hold {phrase} {context[end]}"
    inner, or_null = _without_null(hint)
    bounds = _bounds_in_words(inner)
    if bounds and {"ge", "gt", "le", "lt"} & set(context):
        return f"must be {bounds}{or_null}"
    if kind == "finite_number":
        upper = "between" in bounds or "most" in bounds
        return f"must be {bounds}{or_null}" if upper else f"must be finite{' and ' if bounds else ''}{bounds}{or_null}"
    return f"must be {_type_in_words(inner)}{or_null}"


_PLAIN = {
    types.NoneType: ("null", "null"),
    bool: ("true or false", "true or false"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    str: ("a text", "texts"),
    Path: ("a path", "paths"),
}


def _type_in_words(hint: Any, many: bool = False) -> str:
    """A type in words: `a whole number of at least 1, or null`."""
    plain = _without_annotations(hint)[0]
    origin, parts = typing.get_origin(plain), typing.get_args(plain)
    if origin in (typing.Union, types.UnionType):
        return (" or " if many else ", or ").join(_type_in_words(part, many) for part in parts)
    if origin is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if plain in _PLAIN:
        noun, bounds = _PLAIN[plain][many], _bounds_in_words(hint)
        return f"{noun} {'of ' if bounds.startswith('at') else ''}{bounds}".rstrip()
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "mappings" if many else f"a mapping to {_type_in_words(parts[1], many=True)}" if parts else "a mapping"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return "lists" if many else f"a list of {_type_in_words(parts[0], many=True)}"
    return f"a {getattr(plain, '__name__', plain)}"


def _bounds_in_words(hint: Any) -> str:
    """The bounds of a number in words: `between 0 and 1`, empty where it has none."""
    bounds: dict[str, Any] = {}
    for annotation in _without_annotations(hint)[1]:
        for part in annotation if isinstance(annotation, Interval) else (annotation,):
            if isinstance(part, (Ge, Gt, Le, Lt)):
                ((name, bound),) = dataclasses.asdict(part).items()
                bounds[name] = bound
    if set(bounds) == {"ge", "le"}:
        return f"between {bounds['ge']} and {bounds['le']}"
    phrases = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    return " and ".join(f"{phrases[name]} {bounds[name]}" for name in phrases if name in bounds)


def _without_null(hint: Any) -> tuple[Any, str]:
    """A type without None next to it, and the words for that; a type of several others stays as it is."""
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else ()
    others = [part for part in parts if part is not types.NoneType]
    return (others[0], ", or null") if len(others) == 1 else (hint, "")


def _without_annotations(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without its annotations, and the annotations."""
    if typing.get_origin(hint) is Annotated:
        return typing.get_args(hint)[0], hint.__metadata__
    return hint, ()


def _element_type(hint: Any) -> Any:
    """The type of the values in a mapping or a list; None for any other type and for a union of types."""
    plain = _without_annotations(_without_null(hint)[0])[0]
    origin, parts = typing.get_origin(plain), typing.get_args(plain)
    if not isinstance(origin, type) or not parts:
        return None
    return parts[1] if issubclass(origin, Mapping) else parts[0] if issubclass(origin, Sequence) else None


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
    excluded = {entry: replaces(str(node[TARGET])) for entry, node in on.items()}
    alone = [entry for entry, others in excluded.items() if "*" in others]
    replaced = {other for others in excluded.values() for other in others}
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
