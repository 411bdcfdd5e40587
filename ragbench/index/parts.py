"""The parts of an index: what each depends on, how it is built and opened.

A `part` of the registry exists once in an index. A `source` is a function that makes a part from a suffix: `""` is the
index itself, `:documents` a further source, as in `lexical:documents`. The module of a stage may call `register`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ragbench.base import registry
from ragbench.base.types import ConfigError, IndexError_

if TYPE_CHECKING:
    from ragbench.index.index import Index

_T = TypeVar("_T")
_Sized = TypeVar("_Sized", bound=Sized)


@dataclass(frozen=True)
class StoredPart(Generic[_T]):
    """A part in an artefact's files. Stages read what `open` returns as `index.<name>`.

    `inputs` lists everything that the files depend on, with the version of the code: equal inputs give equal bytes.
    `build` fills an empty folder and may return what happened in this build, for the manifest; `open` reads a finished
    one.
    """

    name: str
    inputs: Callable[[Index], list[Any]]
    build: Callable[[Path, Index], Mapping[str, Any] | None]
    open: Callable[[Path, Index], _T]


@dataclass(frozen=True)
class Part(Generic[_T]):
    """A part that is made in memory from other parts; `fingerprint` is a digest of everything that it depends on."""

    name: str
    fingerprint: Callable[[Index], str]
    open: Callable[[Index], _T]


AnyPart = Part[Any] | StoredPart[Any]


def register(part: AnyPart) -> None:
    """Make a part known by its name. ConfigError when this package has a part of that name."""
    if part.name in registry.entries("part") or part.name in registry.entries("source"):
        raise ConfigError(f"the index has a part '{part.name}' already: give yours another name")
    registry.register("part", part.name, part)


@cache
def _of_source(kind: str, source: str) -> AnyPart | None:
    make = registry.find("source", kind)
    part: AnyPart | None = None if make is None else make(source)
    return part


def find(name: str) -> AnyPart | None:
    """The part of a name, None when there is none."""
    kind, colon, source = name.partition(":")
    return _of_source(kind, f"{colon}{source}") or registry.find("part", name)


def with_rows(opened: _Sized, rows: int, path: Path) -> _Sized:
    """Raise IndexError_ for a part of more or fewer rows than the table of chunks."""
    if len(opened) != rows:
        raise IndexError_(
            f"{path} has {len(opened)} rows instead of {rows}: export the bundle again, or delete the index"
        )
    return opened
