"""Makes arms from settings over one benchmark, one store of artefacts and one set of models, which all arms share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ragbench.base.errors import ConfigError
from ragbench.base.fingerprint import digest
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.settings import Settings
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index
from ragbench.index.spec import IndexSpec
from ragbench.models.access import Models
from ragbench.search.engine.executor import Arm


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
