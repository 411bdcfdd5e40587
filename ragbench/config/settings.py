"""One composed configuration as objects: its pipeline, its index, the way it is measured; and the arms made of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ragbench.base import locations, registry
from ragbench.base.fingerprint import digest
from ragbench.base.options import active, build, make, sections, value_at, with_value
from ragbench.base.types import ConfigError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.load import load as load_data
from ragbench.config.benchmark import load
from ragbench.config.sections import ArtefactsSpec, Basics, CacheSpec, ExecutionSpec, PathsSpec, TrackingSpec
from ragbench.evaluation import measures
from ragbench.evaluation.latency import LatencySpec
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index, IndexSpec, VectorsSpec
from ragbench.models.resolve import CrossEncoderSpec, Models, check_name
from ragbench.search.engine.modes import ModeSpec
from ragbench.search.engine.pipeline import Arm, Pipeline
from ragbench.search.stages.retrieve import RetrieveDense, RetrieveLexical
from ragbench.search.stages.stage import Retriever, Stage

_SOURCES = (RetrieveDense, RetrieveLexical)


@dataclass(frozen=True)
class Settings:
    """One composed configuration under a name; `config` is plain and resolved, `overrides` are the words it is from."""

    name: str
    config: Mapping[str, Any]
    overrides: tuple[str, ...] = ()

    @cached_property
    def pipeline(self) -> Pipeline:
        """The stages that are on, in the configured order; those that ask about the sources get them."""
        stages = tuple(self._stages())
        sources = tuple(stage for _, stage in stages if isinstance(stage, Retriever))
        modes = {mode: build(ModeSpec, node, f"modes.{mode}") for mode, node in self.config.get("modes", {}).items()}
        return Pipeline(tuple((name, stage.among(sources)) for name, stage in stages), modes)

    @cached_property
    def index(self) -> IndexSpec:
        """The specification of the index, with the switches that work at index time (P2, P13)."""
        node = self.config["index"]
        specs = {key.partition(".")[2]: cls for key, cls in sections().items() if key.startswith("index.")}
        parts: dict[str, Any] = {name: build(cls, node.get(name, {}), f"index.{name}") for name, cls in specs.items()}
        passage = parts.pop("passage")
        indexes = ((stage.source, stage.index) for _, stage in self.pipeline if isinstance(stage, _SOURCES))
        return IndexSpec(
            chunker=make(self.value("p13.chunking") or node["chunking"], "index.chunking"),
            passage=replace(passage, headings=passage.headings or bool(self.value("p2.headings"))),
            sources=tuple(sorted((source, index) for source, index in indexes if index is not None)),
            **parts,
        )

    @property
    def data(self) -> Mapping[str, Any]:
        """The `loader` of the collection, and what it is called with."""
        node: Mapping[str, Any] = self.config["data"]
        return node

    @property
    def topics(self) -> Mapping[str, Any]:
        """The `kind` of the queries, and what they are made with."""
        node: Mapping[str, Any] = self.config["topics"]
        return node

    def benchmark(self) -> Benchmark:
        """The benchmark that `data` and `topics` name, read now. Raises as `ragbench.config.benchmark.load`."""
        return load(self.config)

    def documents(self) -> Benchmark:
        """The benchmark of `data` with its documents alone, read now."""
        return load_data(self.data, topics=False)

    @cached_property
    def basics(self) -> Basics:
        """The keys of no section, such as `seed`."""
        return Basics.of(self.config)

    @cached_property
    def tracking(self) -> TrackingSpec:
        """Whether and where runs go to MLflow."""
        return build(TrackingSpec, self.config["tracking"], "tracking")

    @cached_property
    def latency(self) -> LatencySpec:
        """How time is measured."""
        return build(LatencySpec, self.config["latency"], "latency")

    @cached_property
    def execution(self) -> ExecutionSpec:
        """Where arms are computed."""
        return build(ExecutionSpec, self.config.get("execution", {}), "execution")

    @property
    def split(self) -> str:
        """The split of the topics to measure on: train, test or all."""
        return self.basics.split

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures asked for, with the primary one; recall within tokens is always measured."""
        return measures.with_primary(self.basics.measures, self.basics.primary)

    @property
    def primary(self) -> str:
        """The measure of the verdicts."""
        return measures.primary(self.config)

    @property
    def context_tokens(self) -> int:
        """How many tokens of hits a reader reads, for the recall of passages."""
        return self.basics.context_tokens

    @cached_property
    def paths(self) -> PathsSpec:
        """The folders that are configured."""
        return build(PathsSpec, self.config["paths"], "paths")

    @property
    def results(self) -> Path:
        """The folder for everything a run writes."""
        return Path(self.paths.results) if self.paths.results else locations.results()

    @property
    def index_folder(self) -> Path:
        """The folder of index artefacts."""
        return Path(self.paths.index) if self.paths.index else self.results / "index"

    @property
    def artefacts(self) -> ArtefactStore:
        """The store of index artefacts, which shares them by `artefacts.url`."""
        url = build(ArtefactsSpec, self.config.get("artefacts", {}), "artefacts").url
        shared = registry.required("hook", "shared_artefacts", "artefacts.url")(url) if url else None
        return ArtefactStore(self.index_folder, shared)

    @property
    def cache_folder(self) -> Path:
        """The folder of the embedding and score caches."""
        return Path(self.paths.cache) if self.paths.cache else self.results / "cache"

    def models(self, threads: int | None = None) -> Models:
        """The models, with their caches and the vectors that come with ragbench."""
        shipped = build(CacheSpec, self.config.get("cache", {}), "cache").shipped
        return Models(cache=self.cache_folder, threads=threads, shipped=shipped)

    def has(self, key: str) -> bool:
        """Whether the configuration has a key of no section, a section or a group, on or off."""
        return key in self.config

    def value(self, key: str) -> Any:
        """The value of a key such as `hyde.model`, None where there is none."""
        return value_at(self.config, key.split("."))

    def with_values(self, changes: Mapping[str, Any]) -> Settings:
        """The same settings with other values by key such as `hyde.model`, also of keys that a node lacks."""
        config = self.config
        for key, value in changes.items():
            config = with_value(config, key.split("."), value)
        return Settings(self.name, config, self.overrides)

    def check(self) -> Settings:
        """Build every value once, so that errors are raised before any work starts; returns the same settings."""
        measures.check(self.measures)
        return self.check_search()

    def check_search(self) -> Settings:
        """The same for what only searches."""
        for source in ("", *(name for name, spec in self.index.sources if isinstance(spec, VectorsSpec))):
            check_name(self.index.vectors(source).encoder.name, "encoder")
        for model in self.pipeline.models:
            if isinstance(model, CrossEncoderSpec):
                check_name(model.name, "cross-encoder")
        return self

    def _stages(self) -> Iterator[tuple[str, Stage]]:
        order = self.config["order"]
        repeated = [entry for entry in order if order.count(entry) > 1]
        if repeated:
            raise ConfigError(f"order names '{repeated[0]}' more than once")
        for entry, node in active(self.config):
            stage = make({**node, "fields": self._fields(node)} if entry == "lexical" else node, entry)
            if not isinstance(stage, Stage):
                raise ConfigError(f"{entry}._target_ is not a stage: {node['_target_']} does not subclass Stage")
            yield entry, stage

    def _fields(self, node: Mapping[str, Any]) -> dict[str, float]:
        """The weights of the lexical fields, with those of P4 and P9 where they are on."""
        fields = dict(node.get("fields", {}))
        for switch in ("p4", "p9"):
            fields.update(self.value(f"{switch}.fields") or {})
        return fields


@dataclass(frozen=True)
class ArmBuilder:
    """Builds the arms of settings; keeps the indexes and models that they share while an experiment runs."""

    benchmark: Benchmark
    store: ArtefactStore
    models: Models

    @staticmethod
    def of(settings: Settings, benchmark: Benchmark) -> ArmBuilder:
        """A builder that works in the folders that the settings name."""
        return ArmBuilder(benchmark, settings.artefacts, settings.models())

    def arms(self, settings: Sequence[Settings]) -> list[Arm]:
        """One arm for each of the settings; arms with equal index specifications share an index, others its parts."""
        built: dict[str, Index] = {}
        opened: dict[Hashable, Any] = {}

        def index(spec: IndexSpec) -> Index:
            key = digest(spec)
            if key not in built:
                built[key] = Index(
                    spec,
                    self.benchmark.collection,
                    lambda: self.benchmark.documents,
                    self.store,
                    self.models,
                    opened,
                )
            return built[key]

        masked = any(topic.masked for topic in self.benchmark.topics)
        for arm_settings in settings:
            if masked and arm_settings.pipeline.live:
                raise ConfigError(
                    f"arm '{arm_settings.name}' is a live search, whose documents cannot be masked for synthetic "
                    "queries: measure it on human-written queries or on a search log"
                )
        return [Arm(arm_settings.name, arm_settings.pipeline, index(arm_settings.index)) for arm_settings in settings]
