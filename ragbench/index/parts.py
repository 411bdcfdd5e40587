"""The parts of an index: what each depends on, how it is built and opened.

`PARTS` exist once in an index; one of `SOURCES` is also made for a further source: `lexical:documents`. An extra holds
its own in `extras/NAME/parts`, one module each with `PART`; the module of a stage calls `register`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ragbench.base import plugins
from ragbench.base.errors import ConfigError, IndexError_

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

PARTS: Mapping[str, str] = {
    "chunks": "chunks.PART",
    "code": "code.PART",
    "facets": "filters.FACETS",
    "graph": "graph.PART",
    "modified": "filters.MODIFIED",
    "synonyms": "synonyms.PART",
    "terms": "terms.PART",
    "trigrams": "trigrams.PART",
    "vocabulary": "vocabulary.PART",
}
"""By name, where a part is defined; that module is imported when the part is used."""
SOURCES: Mapping[str, str] = {
    "centroids": "dense.centroids_part",
    "dense": "dense.dense_part",
    "encoder": "dense.encoder_part",
    "lexical": "lexical.lexical_part",
    "noise": "background.noise_part",
}
"""By kind, what makes the part of a source from its suffix: `""` is the index itself, `:NAME` a further source."""

_registered: dict[str, AnyPart] = {}


def register(part: AnyPart) -> None:
    """Make a part known by its name. ConfigError when this package has a part of that name."""
    if _defined(part.name) is not None:
        raise ConfigError(f"the index has a part '{part.name}' already: give yours another name")
    _registered[part.name] = part


def find(name: str) -> AnyPart | None:
    """The part of a name, None when there is none."""
    return _registered.get(name) or _defined(name)


@cache
def _defined(name: str) -> AnyPart | None:
    """The part of this package, or of an extra, that has a name."""
    kind, colon, source = name.partition(":")
    part: AnyPart | None = None
    if kind in SOURCES:
        part = _load(SOURCES[kind])(f"{colon}{source}")
    elif name in PARTS:
        part = _load(PARTS[name])
    elif (module := plugins.module("parts", name)) is not None:
        part = importlib.import_module(module).PART
    return part


def _load(path: str) -> Any:
    module, _, attribute = path.partition(".")
    return getattr(importlib.import_module(f"ragbench.index.{module}"), attribute)


def with_rows(opened: _Sized, rows: int, path: Path) -> _Sized:
    """Raise IndexError_ for a part of more or fewer rows than the table of chunks."""
    if len(opened) != rows:
        raise IndexError_(
            f"{path} has {len(opened)} rows instead of {rows}: export the bundle again, or delete the index"
        )
    return opened
