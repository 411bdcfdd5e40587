"""Plan an experiment, then run it step by step: quality, times, verdicts, cold starts, record.

The plan, arms over the topics of a split, is checked before anything is computed. MLflow reads the files of a run.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import progress, registry
from ragbench.base.fingerprint import digest, plain
from ragbench.base.types import BenchmarkError, ConfigError, Query, RagbenchError, ResultsError
from ragbench.benchmark.benchmark import Benchmark, Topic, topic_area
from ragbench.benchmark.native import files_of_judged
from ragbench.config.sections import LOCAL, ExecutionSpec
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.evaluation import latency, measures
from ragbench.evaluation.latency import LatencySpec, Timing
from ragbench.evaluation.machine import Watch
from ragbench.evidence.arms import LATENCY
from ragbench.experiment import coldstart, differences, execution
from ragbench.experiment.estimate import Missing, estimate, missing_passages
from ragbench.experiment.evaluate import ArmEvaluator
from ragbench.index.artefacts import Artefact, Survey
from ragbench.results import comparisons, environment, labels, measurements, store
from ragbench.results.measurements import Measurements
from ragbench.results.store import RunFolder
from ragbench.search.engine.pipeline import Arm

if TYPE_CHECKING:
    import pandas as pd


_LOG = logging.getLogger(__name__)

_LONG = 60.0
"""Seconds of embedding from which the estimate is printed before a run starts."""
_MANY = 300_000
"""Chunks from which the page about several machines is named: two hours of embedding on two cores."""


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


def measure_quality(run: Run) -> None:
    """Measure what every arm finds, and write it; the results of arms that are already finished are read."""
    import pandas as pd

    planned, folder = run.plan, run.folder

    qrels = planned.benchmark.document_qrels
    topics = measurements.TOPIC_COLUMNS.frame(
        (t.qid, t.split, t.type, t.text, t.need, topic_area(qrels.get(t.qid, {}))) for t in planned.topics
    )
    judged = files_of_judged(planned.benchmark, planned.topics)
    folder.write({measurements.TOPICS: topics, **judged, **labels.files(planned.benchmark, set(topics["qid"]))})
    facts = topics[["qid", "split", "type"]]
    frames: dict[str, pd.DataFrame] = {}
    for name, arm in planned.arms.items():
        if arm.pipeline.lasting and store.finished(folder.path, name, arm.key):
            arm.index.prepare(arm.pipeline.needs)
            frames[name] = pd.read_parquet(store.arm_path(folder.path, name) / measurements.PER_QUERY)
    remaining = replace(planned, arms={name: arm for name, arm in planned.arms.items() if name not in frames})
    remaining = replace(remaining, missing=missing_passages(remaining))
    if progress.watched():
        _look_ahead(remaining)
    for evaluated in execution.evaluated(remaining, ArmEvaluator.of(remaining, facts)):
        arm = planned.arms[evaluated.arm]
        arm.index.prepare(arm.pipeline.needs)
        files, frames[arm.name] = folder.arm(arm.name), evaluated.per_query
        metadata = {**_ir_metadata(arm, planned.benchmark, run.environment), "notes": evaluated.notes}
        described = {
            measurements.CONFIG: store.yaml_text(arm.config, sort_keys=True),
            measurements.PIPELINE: f"{arm.pipeline!r}\n",
            measurements.METADATA: store.yaml_text(metadata),
        }
        files.write({**evaluated.files, **described})
        files.finish_arm(arm.key)
        for problem in evaluated.problems:
            _LOG.warning(f"arm '{arm.name}': {problem}")
    read = {a.folder: a for arm in planned.arms.values() for a in arm.artefacts if a.built}
    if came := sum(index.manifest.get("vectors", {}).get("shipped", 0) for index in read.values()):
        rounding = {kind for index in read.values() for kind in index.manifest.get("numerics", {}).values() if kind}
        rounding_note = ", rounded differently than on this CPU" if len(rounding) > 1 else ""
        _LOG.info(
            f"reusing {came:,} passage embeddings bundled with ragbench{rounding_note}: "
            "cache.shipped=off recomputes them"
        )
    run.quality = pd.concat([frames[name] for name in planned.arms], ignore_index=True)


def _look_ahead(remaining: Plan) -> None:
    """Say how many chunks are to be embedded, where that takes long, and that others could help where they are many."""
    coming = estimate(remaining.missing)
    if coming.seconds > _LONG:
        _LOG.info(coming.sentence)
    chunks = max(
        (arm.index.chunks.n_retrievable for arm in remaining.arms.values() if not arm.pipeline.live), default=0
    )
    if chunks >= _MANY and remaining.execution.kind == LOCAL:
        _LOG.info(f"{chunks:,} chunks: docs/cluster.md shows how several machines share the work (execution=dask)")


def _ir_metadata(arm: PlannedArm, benchmark: Benchmark, surroundings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata that explains a run file (Breuer et al., ir_metadata, SIGIR 2022).

    `surroundings` is what describes this machine.
    """
    return {
        "platform": {"software": {"libraries": {"python": surroundings["packages"]}}},
        "implementation": {"source": {"commit": (surroundings["git"] or {}).get("commit")}},
        "resources": {"artefacts": {a.kind: a.fingerprint for a in arm.artefacts}},
        "research goal": {"evaluation": {"reported measures": list(arm.settings.measures)}},
        "data": {"test collection": {"name": benchmark.name, "digest": benchmark.digest}},
        "method": {"pipeline": [{"stage": n, "parameters": plain(s)} for n, s in arm.pipeline]},
    }


def time_arms(run: Run) -> None:
    """Time the queries of all arms but recorded ones, side by side; write the times."""
    arms = [arm for arm in run.plan.arms.values() if not arm.pipeline.recorded]
    if not run.plan.latency.enabled or not arms:
        return
    with Watch() as watch:
        run.timings = latency.measure(arms, _timed_queries(run.plan), run.plan.latency, failed=run.untimed)
    run.machine = watch.record()
    if run.machine["busy"]:
        _LOG.warning(f"{run.machine['busy']}: latency CIs are wider to allow for it")
    for name, reason in run.untimed.items():
        _LOG.warning(f"the latency of '{name}' was not measured ({reason}); quality is complete")
    for name, timing in run.timings.items():
        run.folder.arm(name).table("latency.parquet", timing.frame())


def start_cold(run: Run) -> None:
    """Measure a first query of every arm in a fresh process; one that fails costs a warning, not the run."""
    arms = [arm for arm in run.plan.arms.values() if not arm.pipeline.live]
    if not run.timings or not run.plan.latency.cold_start:
        return
    measured: dict[str, dict[str, float]] = {}
    for arm in progress.steps("timing cold starts", arms):
        try:
            measured[arm.name] = dict(coldstart.measure(arm.config, run.plan.queries[0].text, run.plan.benchmark))
        except RagbenchError as error:
            _LOG.warning(f"the cold start of '{arm.name}' was not measured ({error}); all other results are complete")
    run.cold = measured


def _timed_queries(planned: Plan) -> list[Query]:
    """The queries to time: the topics of the run, and as many others as `latency.queries` lacks.

    Time needs no judgments, so the other topics of the benchmark serve, and then queries derived from its documents.
    """
    limit, queries = planned.latency.queries, list(planned.queries)
    if len(queries) < limit:
        measured_qids = {query.qid for query in queries}
        queries += [topic.query() for topic in planned.benchmark.topics if topic.qid not in measured_qids]
    if len(queries) < limit and (derive := registry.find("hook", "derived_queries")):
        # The documents may give none: fewer queries are timed, and the cost says how many are lacking.
        queries += derive(planned.benchmark.documents, limit, planned.benchmark.name)
    return queries if len(planned.queries) >= limit else queries[:limit]


def _write_table(run: Run) -> pd.DataFrame:
    """The table of times, which is written where there are any."""
    import pandas as pd

    rows = [row for timing in run.timings.values() for row in timing.table()]
    rows += [
        {"arm": name, "stage": f"cold {cost}", "p50": value}
        for name, costs in run.cold.items()
        for cost, value in costs.items()
    ]
    table = pd.DataFrame(rows) if rows else pd.DataFrame({"arm": [], "stage": []})
    if len(table):
        run.folder.text("latency.csv", table.to_csv(index=False))
    return table


def judge(run: Run) -> None:
    """Write the summary and the verdicts."""
    plan, benchmark = run.plan, run.plan.benchmark
    run.record = {
        "name": run.folder.path.name,
        "command": plan.command,
        "arms": list(plan.arms),
        "parameters": plan.parameters,
        "overrides": {name: list(arm.settings.overrides) for name, arm in plan.arms.items()},
        "split": plan.split,
        "topics": len(plan.topics),
        "comparison": _record_comparison(plan),
        "benchmark": {
            "name": benchmark.name,
            "digest": benchmark.digest,
            "collection": benchmark.collection,
            "questions": benchmark.questions,
            "documents": len(benchmark.documents),
            "drawn_from": benchmark.drawn_from,
            "topics": benchmark.provenance,
            "version": benchmark.version,
        },
        "started": plan.started,
        "seconds": round(time.time() - plan.started, 3),
        "environment": run.environment,
        "execution": {"kind": plan.execution.kind, "latency": "on the machine of the command"},
        "latency": plain(plan.latency),
        "untimed": run.untimed,
        "machine": run.machine,
        "peak_memory_bytes": coldstart.peak_memory_bytes(),
        "index_bytes": {name: sum(a.size_bytes for a in arm.artefacts) for name, arm in plan.arms.items()},
        "endpoints": usage() if (usage := registry.find("hook", "endpoint_usage")) else {},
        "models": {name: arm.pipeline.digests(arm.index) for name, arm in plan.arms.items()},
    }
    assert run.quality is not None, "quality is measured first"
    measurements = Measurements(run.folder.path, run.record, run.quality, _write_table(run))
    run.folder.text("summary.csv", measurements.summary(("split", "type")).to_csv(index=False))
    with store.errors_as_results_error(run.folder.path):
        progress.report("comparing arms")
        run.conclude(measurements)
    run.measurements = measurements


def record(run: Run) -> None:
    """Write the record, which ends the experiment."""
    assert run.measurements is not None, "arms are judged before the record is written"
    memory = {name: round(costs.pop(coldstart.PEAK_MEMORY), 1) for name, costs in run.cold.items()}
    run.record |= {"peak_memory_mb": memory, "seconds": round(time.time() - run.plan.started, 3)}
    table = _write_table(run)
    run.measurements = replace(run.measurements, record=run.folder.finish(run.record), latency=table)


def _record_comparison(planned: Plan) -> int:
    """Record that the arms are compared on judged queries: the number of the comparison, 0 where there is none."""
    judged = planned.benchmark.document_qrels.keys() | planned.benchmark.section_qrels.keys()
    queries = [topic.qid for topic in planned.topics if topic.qid in judged]
    if len(planned.arms) < 2 or not queries:
        return 0
    arms = sorted(digest([arm.pipeline.fingerprint, arm.index.spec]) for arm in planned.arms.values())
    key = [planned.primary, arms]
    return comparisons.record(planned.benchmark.name, queries, key, planned.command, list(planned.arms))


_STEPS: Sequence[Callable[[Run], None]] = (
    measure_quality,
    time_arms,
    judge,
    start_cold,
    record,
)


def run(
    settings: Sequence[Settings],
    benchmark: Benchmark,
    *,
    command: str = "run",
    folder: Path | None = None,
    only: Collection[str] | None = None,
    conclude: Callable[[Measurements], None] = measurements.against_first,
    planned: Plan | None = None,
) -> Measurements:
    """Measure every arm on the benchmark, or on `only` these of its queries, and write the results folder.

    A stopped run of the same experiment is continued, unless `folder` names another place. `conclude` writes the
    verdicts, every arm against the first by default, before the record ends the experiment. `planned`: the plan of all
    this where it was needed before, whose open indexes and models are used.
    """
    if planned is None:
        planned = plan(settings, command, ArmBuilder.of(settings[0], benchmark), only)
    planned = replace(planned, started=time.time())
    for arm in planned.arms.values():
        arm.pipeline.require_topics([topic.qid for topic in planned.topics])
    names = list(planned.arms)
    label = names[0] if len(names) == 1 else f"{len(names)}-arms"
    with store.writing(planned.results, command, label, planned.digest, names, folder) as run_folder:
        return _measured(Run(planned, run_folder, conclude), _STEPS)


def remeasure_latency(
    finished: Measurements,
    conclude: Callable[[Measurements], None] = measurements.against_first,
    benchmark: Benchmark | None = None,
) -> Measurements:
    """Re-measure the latency of a finished run's arms, in a run of its own with the finished run's values.

    `benchmark`: the one of the run, read again by default. Raises ResultsError for an ablation, and for documents or
    topics that have changed since.
    """
    record, names = finished.record, finished.arms
    if record["command"] != "run":
        raise ResultsError(
            f"{finished.folder} is of ragbench {record['command']}: only those of ragbench run are timed again"
        )
    settings = [
        Settings(name, {**finished.config(name), "name": name}, tuple(record["overrides"][name])).with_values(
            {"latency.enabled": True}
        )
        for name in names
    ]
    benchmark = settings[0].benchmark() if benchmark is None else benchmark
    if benchmark.digest != record["benchmark"]["digest"]:
        raise ResultsError(f"the data of {finished.folder} has changed since: measure it again with ragbench run")
    builder = ArmBuilder.of(settings[0], benchmark)
    planned = plan(settings, "run", builder, set(finished.topics["qid"]))
    identity, label = digest([planned.digest, "timed again", finished.folder.name]), f"{len(names)}-arms-timed-again"
    with store.writing(finished.folder.parents[1], "run", label, identity, names, None) as folder:
        labelled = [labels.LABELS] if finished.labels is not None else []
        folder.copy(finished.folder, names, (measurements.TOPICS, *labelled), without=LATENCY)
        folder.write(files_of_judged(planned.benchmark, planned.topics))
        for arm in planned.arms.values():
            arm.index.prepare(arm.pipeline.needs)
        return _measured(Run(planned, folder, conclude, quality=finished.per_query), _STEPS[1:])


def _measured(run: Run, remaining: Sequence[Callable[[Run], None]]) -> Measurements:
    for step in remaining:
        step(run)
    assert run.measurements is not None, "the last steps make them"
    return run.measurements
