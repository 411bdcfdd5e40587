"""The plan of an experiment: arms over the topics of a split, checked before anything is computed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base.errors import BenchmarkError, ConfigError
from ragbench.base.fingerprint import digest, plain
from ragbench.base.types import Query
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.config.sections import ExecutionSpec
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.evaluation import measures
from ragbench.evaluation.latency import LatencySpec, Timing
from ragbench.experiment import differences
from ragbench.index.artefacts import Artefact, Survey
from ragbench.results import environment
from ragbench.results.measurements import Measurements
from ragbench.results.store import RunFolder
from ragbench.search.engine.pipeline import Arm

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.experiment.estimate import Missing


@dataclass(frozen=True)
class PlannedArm(Arm):
    """An arm of an experiment, with the settings that it is made from."""

    settings: Settings

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration, plain."""
        config: Mapping[str, Any] = plain(self.settings.config)
        return config

    @property
    def key(self) -> str:
        """The identity of what the arm measures, whatever its folder."""
        return digest([self.name, self.pipeline.fingerprint, self.index.spec, self.index.collection])

    @property
    def artefacts(self) -> list[Artefact]:
        """The artefacts that the arm reads; its index may hold more for other arms."""
        return self.index.artefacts(self.pipeline.needs)


@dataclass(frozen=True)
class Plan:
    """Arms by name over the topics of a split; the first arm decides how and where all are measured.

    `primary` is the measure of the verdicts. `digest` is the identity of the experiment: the arms, topics and measures,
    not how or where it runs. `missing` are the passages to embed before arms are computed.
    """

    command: str
    benchmark: Benchmark
    topics: Sequence[Topic]
    queries: Sequence[Query]
    arms: Mapping[str, PlannedArm]
    split: str
    primary: str
    latency: LatencySpec
    execution: ExecutionSpec
    results: Path
    digest: str
    started: float = field(default_factory=time.time)
    missing: Sequence[Missing] = ()

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """By arm, its options and values that are not the defaults or in which the arms differ."""
        return differences.of_arms({arm.name: (arm.settings.overrides, arm.config) for arm in self.arms.values()})


def plan(settings: Sequence[Settings], command: str, builder: ArmBuilder, only: Collection[str] | None = None) -> Plan:
    """Make the arms, and check everything possible before computing. Raises ConfigError, BenchmarkError.

    `only`: the ids of the queries to measure, of those of the split; all of them by default.
    """
    repeated = next((name for name, count in Counter(arm.name for arm in settings).items() if count > 1), None)
    if repeated is not None:
        raise ConfigError(f"two arms are called '{repeated}': give them different names with name=...")
    shared, benchmark = settings[0], builder.benchmark
    measures.check(shared.measures)
    # By name, so that no table depends on the order in which they were written down.
    of_split = sorted(benchmark.select(shared.split), key=lambda topic: topic.qid)
    topics = tuple(topic for topic in of_split if only is None or topic.qid in only)
    judged = {*benchmark.document_qrels, *benchmark.section_qrels}
    if not shared.basics.allow_unjudged and not any(topic.qid in judged for topic in topics):
        raise BenchmarkError(
            f"none of the {len(topics)} queries of '{benchmark.name}' has a relevance judgment: correct the "
            "answers, or add allow_unjudged=true to measure only times and to pool results for judging"
        )
    arms = [
        PlannedArm(arm.name, arm.pipeline, arm.index, of_arm)
        for arm, of_arm in zip(builder.arms(settings), settings, strict=True)
    ]
    qids = [] if len(topics) == len(of_split) else [topic.qid for topic in topics]
    return Plan(
        command,
        benchmark,
        topics,
        [topic.query() for topic in topics],
        {arm.name: arm for arm in arms},
        shared.split,
        shared.primary,
        shared.latency,
        shared.execution,
        shared.results,
        digest(
            [command, benchmark.digest, shared.split, shared.measures, shared.primary, [arm.key for arm in arms], *qids]
        ),
    )


def surveyed(settings: Sequence[Settings], benchmark: Benchmark, command: str) -> Plan:
    """The plan of a run that may come: of its artefacts only missing chunk tables are built."""
    shared = settings[0]
    return plan(settings, command, ArmBuilder(benchmark, Survey(shared.index_folder), shared.models()))


@dataclass
class Run:
    """An experiment while its steps run: what each adds for those that follow.

    `quality` has a row for every arm, query and measure. `timings` are by arm, empty without latency; `machine` is its
    state while they were taken; `untimed` says why arms could not be timed. `cold` has the times of a first query by
    arm. `record` becomes experiment.json.
    """

    plan: Plan
    folder: RunFolder
    conclude: Callable[[Measurements], None]
    environment: Mapping[str, Any] = field(default_factory=environment.describe)
    quality: pd.DataFrame | None = None
    timings: Mapping[str, Timing] = field(default_factory=dict)
    machine: Mapping[str, Any] | None = None
    untimed: dict[str, str] = field(default_factory=dict)
    cold: Mapping[str, dict[str, float]] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    measurements: Measurements | None = None
