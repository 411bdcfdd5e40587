"""The plan of an experiment: arms over the topics of a split, checked before anything is computed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ragbench.base.errors import BenchmarkError, ConfigError
from ragbench.base.fingerprint import digest, plain
from ragbench.base.types import Query
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.config import differences
from ragbench.config.arm_builder import ArmBuilder, Say
from ragbench.config.settings import Settings
from ragbench.evaluation import measures
from ragbench.results.measurements import Measurements
from ragbench.results.store import RunFolder

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.evaluation.latency import Timing
    from ragbench.index.artefacts import Artefact
    from ragbench.search.engine.executor import Arm


@dataclass(frozen=True)
class Plan:
    """Arms by name, each with its settings, over the topics of a split; the first settings decide what all share."""

    command: str
    benchmark: Benchmark
    topics: Sequence[Topic]
    arms: Mapping[str, tuple[Settings, Arm]]
    started: float = field(default_factory=time.time)

    @property
    def settings(self) -> list[Settings]:
        """The settings of every arm."""
        return [settings for settings, _ in self.arms.values()]

    @property
    def shared(self) -> Settings:
        """The settings that decide where and how to measure."""
        return self.settings[0]

    @cached_property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """By arm, its choices and values that are not the defaults or in which the arms differ."""
        return differences.of_arms({arm.name: (arm.overrides, plain(arm.config)) for arm in self.settings})

    @cached_property
    def queries(self) -> list[Query]:
        """The topics as queries of the pipelines."""
        return [topic.query() for topic in self.topics]

    @property
    def digest(self) -> str:
        """The identity of an experiment: the arms, topics and measures, not how or where it runs."""
        keys = [arm_key(arm) for _, arm in self.arms.values()]
        qids = [] if len(self.topics) == len(self.benchmark.select(self.shared.split)) else [t.qid for t in self.topics]
        return digest([self.command, self.benchmark.digest, self.shared.split, self.shared.measures, keys, *qids])


def plan(settings: Sequence[Settings], command: str, builder: ArmBuilder, only: Collection[str] | None = None) -> Plan:
    """Make the arms, and check everything possible before computing. Raises ConfigError, BenchmarkError.

    `only`: the ids of the queries to measure, of those of the split; all of them by default.
    """
    repeated = next((name for name, count in Counter(arm.name for arm in settings).items() if count > 1), None)
    if repeated is not None:
        raise ConfigError(f"two arms are called '{repeated}': give them different names with name=...")
    measures.check(settings[0].measures)
    # By name, so that no table depends on the order in which they were written down.
    topics = tuple(sorted(builder.benchmark.select(settings[0].split), key=lambda topic: topic.qid))
    topics = topics if only is None else tuple(topic for topic in topics if topic.qid in only)
    judged = {*builder.benchmark.document_qrels, *builder.benchmark.section_qrels}
    if not settings[0].config.get("allow_unjudged") and not any(topic.qid in judged for topic in topics):
        raise BenchmarkError(
            f"none of the {len(topics)} queries of '{builder.benchmark.name}' has a relevance judgment: correct the "
            "answers, or add allow_unjudged=true to measure only times and to pool results for judging"
        )
    arms = dict(zip((arm.name for arm in settings), zip(settings, builder.arms(settings), strict=True), strict=True))
    return Plan(command, builder.benchmark, topics, arms)


@dataclass
class Run:
    """An experiment while its steps run: what each adds for those that follow.

    `quality` has a row for every arm, query and measure. `timings` are by arm, empty without latency; `machine` is its
    state while they were taken. `cold` has the times of a first query by arm. `record` becomes experiment.json.
    """

    plan: Plan
    folder: RunFolder
    conclude: Callable[[Measurements], None]
    say: Say
    quality: pd.DataFrame | None = None
    timings: Mapping[str, Timing] = field(default_factory=dict)
    machine: Mapping[str, Any] | None = None
    cold: Mapping[str, dict[str, float]] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    measurements: Measurements | None = None


def arm_key(arm: Arm) -> str:
    """The identity of what an arm measures, whatever its folder."""
    return digest([arm.name, arm.pipeline.fingerprint, arm.index.spec, arm.index.collection])


def artefacts(arm: Arm) -> list[Artefact]:
    """The artefacts that the arm reads; its index may hold more for other arms."""
    return arm.index.artefacts(arm.pipeline.needs)
