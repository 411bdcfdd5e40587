"""What a value of the configuration makes the process do, declared next to the bound of its field.

    endpoint: Annotated[str, Constraint(...), Needs(Capability.SENDS)]

A value without a declaration is pure: it only changes a computation. The
caller that composes a configuration for a third party decides what it may do: a page of the studio nothing, a typed
command everything."""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any


class Capability(StrEnum):
    """What a value may need; the text follows its key in a message: `hyde.endpoint sends ...`."""

    READS = "reads files of this machine"
    WRITES = "writes files of this machine"
    SENDS = "sends texts to a server"
    EXECUTES = "starts a program or imports code"


NOTHING: frozenset[Capability] = frozenset()
EVERYTHING = frozenset(Capability)


@dataclass(frozen=True)
class Needs:
    """The capability that a value of a field needs; a function where it depends on the value (None: pure)."""

    of: Capability | Callable[[Any], Capability | None]

    def by(self, value: Any) -> Capability | None:
        """What this value needs; nothing where it is empty."""
        if value is None or value == "" or value == () or value == {}:
            return None
        return self.of if isinstance(self.of, Capability) else self.of(value)


_granted: ContextVar[frozenset[Capability]] = ContextVar("granted", default=EVERYTHING)


@contextmanager
def granting(capabilities: frozenset[Capability]) -> Iterator[None]:
    """Compose and build inside the block with these permissions only."""
    token = _granted.set(capabilities & _granted.get())
    try:
        yield
    finally:
        _granted.reset(token)


def granted() -> frozenset[Capability]:
    """What may be done here: everything, unless a block says otherwise."""
    return _granted.get()


_TRUSTED = "RAGBENCH_TRUST"
"""The environment variable by which `--trust` reaches the processes that a command starts."""


def trusting() -> bool:
    """Return True if project files and bundles may specify servers, programs and classes (`--trust`)."""
    return os.environ.get(_TRUSTED) == "1"


@contextmanager
def trust() -> Iterator[None]:
    """Let project files and bundles specify servers, programs and classes inside the block."""
    value_before = os.environ.get(_TRUSTED)
    os.environ[_TRUSTED] = "1"
    try:
        yield
    finally:
        if value_before is None:
            del os.environ[_TRUSTED]
        else:
            os.environ[_TRUSTED] = value_before


def needs_below(value: Any, path: str) -> Iterator[tuple[str, Capability, Any]]:
    """Key, capability and value of everything in a dataclass, and those inside it, that is not pure."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from needs_below(inner, f"{path}.{key}")
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from needs_below(inner, path)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        declared = _declared(type(value))
        for field in dataclasses.fields(value):
            inner, key = getattr(value, field.name), f"{path}.{field.name}"
            needs = declared.get(field.name)
            capability = needs.by(inner) if needs else None
            if capability is not None:
                yield key, capability, inner
            yield from needs_below(inner, key)


@cache
def _declared(cls: type) -> Mapping[str, Needs]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return {name: needs for name, hint in hints.items() if (needs := _find(hint)) is not None}


def _find(hint: Any) -> Needs | None:
    if typing.get_origin(hint) is Annotated:
        for annotation in hint.__metadata__:
            if isinstance(annotation, Needs):
                return annotation
    inner = (_find(part) for part in typing.get_args(hint) if not isinstance(part, (str, int)))
    return next((needs for needs in inner if needs is not None), None)
