"""Translate a pipeline parameter by parameter, and know which parameters have not been translated.

An exporter reads through a `Reading`. A parameter that it never read, and whose value is not what the other system
always does, is left over and becomes a sentence: a stage or parameter that is added later appears there by itself.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ragbench.base.fingerprint import plain
from ragbench.config.settings import Settings
from ragbench.index.index import IndexSpec

_S = TypeVar("_S")

_Fixed = Mapping[tuple[str, str], Any]
"""The only value that the other system has, by (class, parameter); the index is class `index`, its names are dotted."""


_NEUTRAL: _Fixed = {
    ("RetrieveDense", "document"): 0.0,
    ("RetrieveDense", "source"): "dense",
    ("RetrieveDense", "index"): None,
    ("RetrieveLexical", "source"): "lexical",
    ("RetrieveLexical", "index"): None,
    ("Fuse", "method"): "rrf",
    ("Fuse", "norm"): "min_max",
    ("Fuse", "least"): {"dense": -1.0},
    ("index", "passage.title"): False,
    ("index", "passage.path"): False,
}
"""What a search does that does not have these parameters."""


class Reading:
    """The stages and the index of a configuration, with a record of the parameters that were read."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._read: set[tuple[str, str]] = set()
        self._needs = settings.pipeline.needs | {"chunks"}
        self.index: IndexSpec = settings.index

    def stage(self, cls: type[_S]) -> _S | None:
        """The stage of a class, None when there is none."""
        return self._settings.pipeline.first(cls)

    def value(self, cls: type[Any], name: str, otherwise: Any) -> Any:
        """A parameter of the stage of a class, `otherwise` when the stage is off; marks it as read."""
        self._read.add((cls.__name__, name))
        stage = self.stage(cls)
        return otherwise if stage is None else getattr(stage, name)

    def index_value(self, name: str) -> Any:
        """A parameter of the index by its dotted name, None when there is none; marks it as read."""
        self._read.add(("index", name))
        return flat_index(self.index).get(name)

    def left_over(self, classes: Sequence[type[Any]], fixed: _Fixed, system: str) -> list[str]:
        """A sentence for every stage that the system lacks, and every parameter neither read nor fixed to its value."""
        names, fixed = {cls.__name__ for cls in classes}, {**_NEUTRAL, **fixed}
        sentences = []
        for name, stage in self._settings.pipeline:
            parameters = _parameters(stage)
            kind = type(stage).__name__
            if kind not in names or stage is not self.stage(type(stage)):
                pairs = ", ".join(f"{key}={_json(value)}" for key, value in parameters.items())
                sentences.append(f"{name} ({stage.describe()}): {system} has no such step{pairs and f'; {pairs}'}")
                continue
            sentences += self._differing(kind, name, parameters, fixed, system)
        parts = {key: value for key, value in flat_index(self.index).items() if _part(key) in self._needs}
        return sentences + self._differing("index", "index", parts, fixed, system)

    def replayed(
        self,
        classes: Sequence[type[Any]],
        fixed: _Fixed,
        always: Mapping[str, Any] | None = None,
        without: Sequence[type[Any]] = (),
    ) -> Settings:
        """The configuration that the system runs with a file of it, as far as our stages match its own.

        Steps that it lacks (not `classes`, or in `without`) are off, parameters that it has no key for have its `fixed`
        value, and the steps `always`, nodes by entry of `order`, are on.
        """
        names = {cls.__name__ for cls in classes} - {cls.__name__ for cls in without}
        fixed, changes = {**_NEUTRAL, **fixed}, dict(always or {})
        for name, stage in self._settings.pipeline:
            kind = type(stage).__name__
            if kind not in names or stage is not self.stage(type(stage)):
                changes.setdefault(name, {})
                continue
            for key in _parameters(stage):
                if (kind, key) in fixed and (kind, key) not in self._read:
                    changes[f"{name}.{key}"] = plain(fixed[kind, key])
        for key, value in flat_index(self.index).items():
            if ("index", key) in fixed and ("index", key) not in self._read and value != fixed["index", key]:
                changes[f"index.{key.replace('chunker.', 'chunking.')}"] = plain(fixed["index", key])
        if changes.get("index.passage.headings") is False:
            changes["p2"] = {}
        return self._settings.with_values(changes)

    def out_of_order(self, order: Sequence[type[Any]], system: str) -> list[str]:
        """A sentence for every stage that runs before a stage that the system runs earlier."""
        position = {cls.__name__: number for number, cls in enumerate(order)}
        stages = [
            (name, type(stage).__name__) for name, stage in self._settings.pipeline if type(stage).__name__ in position
        ]
        return [
            f"order: {first} runs before {second} here; {system} runs it after"
            for (first, kind), (second, next_kind) in itertools.pairwise(stages)
            if position[kind] > position[next_kind]
        ]

    def _differing(self, kind: str, label: str, parameters: Mapping[str, Any], fixed: _Fixed, system: str) -> list[str]:
        sentences = []
        for key, value in parameters.items():
            if (kind, key) in self._read:
                continue
            if (kind, key) not in fixed:
                sentences.append(f"{label}.{key} = {_json(value)}: {system} has no key for it")
            elif plain(fixed[kind, key]) != value:
                sentences.append(f"{label}.{key} = {_json(value)}: {system} always has {_json(fixed[kind, key])}")
        return sentences


def flat_index(spec: IndexSpec) -> dict[str, Any]:
    """The index specification as one level: `chunker`, `chunker.min_chars`, `passage.headings` ...

    Further sources and the indexed fields, from which stages choose, are excluded: the stages name them.
    """
    values: dict[str, Any] = {}
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            if field.name == "chunker":
                values["chunker"] = type(value).__name__
            values |= {f"{field.name}.{key}": item for key, item in _parameters(value).items()}
        else:
            values[field.name] = value
    if values["dense.kind"] == "flat":  # these shape structures that a flat index does not have
        for key in ("m", "ef_construction", "ef_search", "lists", "probes"):
            values.pop(f"dense.{key}")
    return {key: value for key, value in values.items() if key not in ("sources", "lexical.fields", "lexical.unit")}


def _part(key: str) -> str:
    """The part of the index that a parameter shapes."""
    first = key.split(".")[0]
    return {"chunker": "chunks", "passage": "dense"}.get(first, first)


def _parameters(stage: Any) -> dict[str, Any]:
    """The parameters of a stage, without those that the pipeline fills in."""
    fields = (field for field in dataclasses.fields(stage) if "made by" not in field.metadata)
    return {field.name: plain(getattr(stage, field.name)) for field in fields}


def _json(value: Any) -> str:
    values = plain(value)
    if isinstance(values, Mapping):
        values = {key: item for key, item in values.items() if key}  # without the name of the class
    return textwrap.shorten(json.dumps(values, ensure_ascii=True, default=str), 200, placeholder=" ...")
