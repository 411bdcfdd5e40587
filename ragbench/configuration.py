"""From a composed configuration (plain mappings) to values: pipeline, index specification, measuring.

Every node with `_target_` becomes a dataclass; its keys are checked against the fields and its values against their
types before anything is built, so that a wrong configuration is one sentence and not a half-done run.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Interval

from ragbench import locations
from ragbench.bounds import Checked, Count, Natural, Positive, Refused, Weight, checked
from ragbench.engine.pipeline import Pipeline
from ragbench.errors import ConfigError
from ragbench.index.dense import DenseSpec
from ragbench.index.index import IndexSpec
from ragbench.index.lexical import LexicalSpec
from ragbench.index.shards import Sharding
from ragbench.index.vocabulary import VocabularySpec
from ragbench.models.resolve import CrossEncoderSpec, EncoderSpec, check_name
from ragbench.stages.stage import Stage

T = TypeVar("T")

REPLACES = "_replaces_"
"""In a stage's configuration: entries of `order` that are passed over while this stage is on; `*` is all others."""

SPLITS = ("train", "test", "all")


@dataclass(frozen=True)
class LatencySpec(Checked):
    """How to measure. `queries`: how many are sampled; `rounds`: how often each is asked; `warmup`: queries before.

    `arrival_qps`: rates of arrival for the open loop (`ragbench.timing.open_loop`), None to leave it out; `arrivals`:
    queries sent at each rate.
    """

    enabled: bool = True
    queries: Count = 40
    rounds: Count = 3
    warmup: Natural = 10
    threads: Count = 1
    seed: int = 13
    cold_start: bool = True
    arrival_qps: Positive | tuple[Positive, ...] | None = None
    arrivals: Count = 100

    @property
    def rates(self) -> tuple[float, ...]:
        """The rates of the open loop, ascending, each once."""
        given = self.arrival_qps
        return tuple(sorted(set(given))) if isinstance(given, tuple) else () if given is None else (given,)


@dataclass(frozen=True)
class StatisticsSpec(Checked):
    """How sure a verdict is. `draws`: sign patterns and bootstrap samples; `confidence`: of intervals and tests.

    `smallest_effect`: what is surely smaller than this does not matter, in the unit of the primary measure.
    """

    draws: Count = 10_000
    confidence: Annotated[float, Interval(gt=0.5, lt=1)] = 0.95
    smallest_effect: Weight = 0.02


@dataclass(frozen=True)
class BudgetSpec(Checked):
    """What a change may add to the p95 of a query, in milliseconds; None sets no limit. Seed 000.

    A change that turns re-ranking on has the larger of the two.
    """

    p95_ms: Weight | None = 50.0
    rerank_p95_ms: Weight | None = 150.0

    @property
    def of_rerank_ms(self) -> float | None:
        """The budget of a change that turns re-ranking on."""
        return None if self.p95_ms is None or self.rerank_p95_ms is None else max(self.p95_ms, self.rerank_p95_ms)


@dataclass(frozen=True)
class Settings:
    """One composed configuration under a name; `config` is plain and resolved, `overrides` is what was asked for."""

    name: str
    config: Mapping[str, Any]
    overrides: tuple[str, ...] = ()

    @cached_property
    def pipeline(self) -> Pipeline:
        """The stages that are on, in the configured order."""
        return Pipeline(tuple(self._stages()))

    @cached_property
    def index(self) -> IndexSpec:
        """What shapes the index. Switches that work at index time (P2, P4, P9, P13) are folded in here."""
        node = self.config["index"]
        switched = (self._optional("p13", "chunking") or node["chunking"], self._fields())
        return IndexSpec(
            chunker=make(switched[0], "index.chunking"),
            lexical=build(LexicalSpec, {**node["lexical"], "fields": switched[1]}, "index.lexical"),
            dense=build(DenseSpec, node["dense"], "index.dense"),
            encoder=build(EncoderSpec, node["encoder"], "index.encoder"),
            vocabulary=build(VocabularySpec, node["vocabulary"], "index.vocabulary"),
            headings=bool(self._optional("p2", "headings")),
        )

    @cached_property
    def sharding(self) -> Sharding:
        """How a large index is built; it shapes nothing."""
        return build(Sharding, self.config["index"].get("build", {}), "index.build")

    @cached_property
    def latency(self) -> LatencySpec:
        """How time is measured."""
        return build(LatencySpec, self.config["latency"], "latency")

    @cached_property
    def statistics(self) -> StatisticsSpec:
        """How sure a verdict is."""
        return build(StatisticsSpec, self.config["statistics"], "statistics")

    @cached_property
    def budget(self) -> BudgetSpec:
        """What a change may add to the time of a query."""
        return build(BudgetSpec, self.config["budget"], "budget")

    @property
    def split(self) -> str:
        """Which topics are measured."""
        split = str(self.config["split"])
        if split not in SPLITS:
            raise ConfigError(f"split must be one of {', '.join(SPLITS)}, got {split}")
        return split

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures asked for."""
        return tuple(str(measure) for measure in self.config["measures"])

    @property
    def context_tokens(self) -> int:
        """How many tokens of hits a reader takes in, for the recall of passages."""
        tokens = self.config["context_tokens"]
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
            raise ConfigError(f"context_tokens must be a whole number of at least 1, got {tokens}")
        return tokens

    @property
    def results(self) -> Path:
        """The folder for everything a run writes."""
        given = self.config["paths"]["results"]
        return Path(given) if given else locations.results()

    @property
    def index_folder(self) -> Path:
        """The folder of index artefacts."""
        given = self.config["paths"]["index"]
        return Path(given) if given else self.results / "index"

    @property
    def cache_folder(self) -> Path:
        """The folder of the embedding and score caches."""
        given = self.config["paths"]["cache"]
        return Path(given) if given else self.results / "cache"

    def with_value(self, key: str, value: Any) -> Settings:
        """The same settings with another value for an existing key such as `hyde.text`."""

        def changed(node: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
            return {**node, path[0]: changed(node[path[0]], path[1:]) if len(path) > 1 else value}

        return Settings(self.name, changed(self.config, key.split(".")), self.overrides)

    def check(self) -> Settings:
        """Build every value once, so that what is wrong is said before any work starts."""
        _ = self.latency, self.sharding, self.split, self.measures, self.context_tokens
        _ = self.statistics, self.budget
        check_name(self.index.encoder.name, "encoder")
        for model in self.pipeline.models:
            if isinstance(model, CrossEncoderSpec):
                check_name(model.name, "cross-encoder")
        return self

    def _stages(self) -> Iterator[tuple[str, Stage]]:
        order = self.config["order"]
        repeated = [entry for entry in order if order.count(entry) > 1]
        if repeated:
            raise ConfigError(f"order names '{repeated[0]}' more than once")
        for entry in order:
            if str(entry).split(".")[0] not in self.config:
                raise ConfigError(f"order names '{entry}', which is no stage; known: {', '.join(self._known())}")
        for entry, node in active(self.config):
            stage = make(node, entry)
            if not isinstance(stage, Stage):
                raise ConfigError(f"{entry}._target_ is no stage: {node['_target_']} lacks the stage protocol")
            yield entry, stage

    def _known(self) -> list[str]:
        return sorted(key for key, value in self.config.items() if isinstance(value, Mapping))

    def _fields(self) -> list[tuple[str, float]]:
        fields = dict(self.config["index"]["lexical"]["fields"])
        for switch in ("p4", "p9"):
            fields.update(self._optional(switch, "fields") or {})
        return sorted(fields.items())

    def _optional(self, *keys: str) -> Any:
        return _at(self.config, keys)


def active(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The entries of `order` that are on and not replaced by another, with their configuration."""
    nodes = {str(entry): _at(config, str(entry).split(".")) for entry in config["order"]}
    on = {entry: node for entry, node in nodes.items() if isinstance(node, Mapping) and "_target_" in node}
    alone = {entry: node for entry, node in on.items() if "*" in node.get(REPLACES, ())}
    replaced = {name for node in on.values() for name in node.get(REPLACES, ())}
    return ((entry, node) for entry, node in (alone or on).items() if entry not in replaced)


def _at(node: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def make(node: Mapping[str, Any], where: str) -> Any:
    """Build the dataclass that `node['_target_']` names from the other keys of the node."""
    path = str(node["_target_"])
    module_name, _, class_name = path.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError):
        raise ConfigError(f"{where}._target_ names {path}, which cannot be imported") from None
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise ConfigError(f"{where}._target_ names {path}, which is not a dataclass")
    return build(cls, {key: value for key, value in node.items() if key not in ("_target_", REPLACES)}, where)


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Build a dataclass from plain values. Raises ConfigError for unknown keys, missing keys and wrong types."""
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise ConfigError(f"unknown key {where}.{key}{_did_you_mean(str(key), list(fields))}")
    for name, field in fields.items():
        if name not in values and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{where}.{name} is missing")
    try:
        return cls(**{name: checked(cls, name, values[name]) for name in fields if name in values})
    except Refused as refusal:
        raise Refused(where, refusal.key, refusal.reason) from None


def _did_you_mean(key: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known keys: {', '.join(known)}"
