"""Run arms over a benchmark: plan, quality, time, conclusion; MLflow afterwards, from the files."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import plugins
from ragbench.base import progress as shown
from ragbench.base.errors import BenchmarkError, ConfigError, LiveError, RagbenchError, ResultsError
from ragbench.base.fingerprint import digest, plain
from ragbench.base.types import Query
from ragbench.benchmark.benchmark import Benchmark, Qrels, Topic, topic_area
from ragbench.benchmark.documents import file_names
from ragbench.benchmark.native import DOCUMENTS, SECTIONS, qrels_text
from ragbench.benchmark.runs import new_name, renamed
from ragbench.config.arm_builder import ArmBuilder, Progress, Say, fetch_caches, share_caches
from ragbench.config.benchmark import load
from ragbench.config.settings import Settings
from ragbench.evaluation import diagnosis, headroom, latency, levels, measures, open_loop, passages, source_rankings
from ragbench.evaluation.machine import Watch
from ragbench.evidence.arms import LATENCY
from ragbench.evidence.policy import primary
from ragbench.experiment import coldstart, execution, forecast, provisional
from ragbench.results import comparisons, environment, measurements, store, top_hits, verdicts
from ragbench.results.measurements import Measurements
from ragbench.results.store import RunFolder
from ragbench.search.stages import live

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.index.artefact import Artefact
    from ragbench.search.engine.executor import Arm, Outcome


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
        return [each for each, _ in self.arms.values()]

    @property
    def shared(self) -> Settings:
        """The settings that decide where and how to measure."""
        return self.settings[0]

    @cached_property
    def queries(self) -> list[Query]:
        """The topics as queries of the pipelines."""
        return [topic.query() for topic in self.topics]

    @property
    def digest(self) -> str:
        """The identity of an experiment: the arms, topics and measures, not how or where it runs."""
        keys = [arm_key(arm) for _, arm in self.arms.values()]
        some = [] if len(self.topics) == len(self.benchmark.select(self.shared.split)) else [t.qid for t in self.topics]
        return digest([self.command, self.benchmark.digest, self.shared.split, self.shared.measures, keys, *some])


def plan(settings: Sequence[Settings], command: str, builder: ArmBuilder, only: Collection[str] | None = None) -> Plan:
    """Make the arms, and check everything possible before computing. Raises ConfigError, BenchmarkError.

    `only`: the ids of the queries to measure, of those of the split; all of them by default.
    """
    repeated = next((name for name, count in Counter(each.name for each in settings).items() if count > 1), None)
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
    arms = dict(zip((each.name for each in settings), zip(settings, builder.arms(settings), strict=True), strict=True))
    return Plan(command, builder.benchmark, topics, arms)


def run(
    settings: Sequence[Settings],
    benchmark: Benchmark,
    *,
    command: str = "run",
    folder: Path | None = None,
    only: Collection[str] | None = None,
    conclude: Callable[[Measurements], None] = verdicts.against_first,
    progress: Progress | None = None,
    say: Say = print,
) -> Measurements:
    """Measure every arm on the benchmark, or on `only` these of its queries, and write the results folder.

    A stopped run of the same experiment is continued, unless `folder` names another place. `conclude` writes the
    verdicts, every arm against the first unless told otherwise, before the record ends the experiment.
    """
    builder = ArmBuilder.of(settings[0], benchmark, progress, say)
    fetch_caches(builder.store, builder.models)
    planned = plan(settings, command, builder, only)
    for _, arm in planned.arms.values():
        arm.pipeline.require_topics([topic.qid for topic in planned.topics])
    names = list(planned.arms)
    label = names[0] if len(names) == 1 else f"{len(names)}-arms"
    with store.writing(planned.shared.results, command, label, planned.digest, names, folder, say) as place:
        quality = _measure_quality(planned, place, builder, say)
        times = _measure_time(planned, place, progress, say)
        found = _conclude(planned, place, quality, times, conclude, progress, say)
    share_caches(builder.store, builder.models)
    return found


def time_again(
    finished: Measurements,
    conclude: Callable[[Measurements], None] = verdicts.against_first,
    progress: Progress | None = None,
    say: Say = print,
    benchmark: Benchmark | None = None,
) -> Measurements:
    """Time the arms of a finished run anew, in a run of its own with the values that the finished one measured.

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
    benchmark = load(settings[0].config) if benchmark is None else benchmark
    if benchmark.digest != record["benchmark"]["digest"]:
        raise ResultsError(f"the data of {finished.folder} has changed since: measure it again with ragbench run")
    builder = ArmBuilder.of(settings[0], benchmark, progress, say)
    planned = plan(settings, "run", builder, set(finished.topics["qid"]))
    identity, label = digest([planned.digest, "timed again", finished.folder.name]), f"{len(names)}-arms-timed-again"
    with store.writing(finished.folder.parents[1], "run", label, identity, names, None, say) as place:
        place.copy(finished.folder, names, (measurements.TOPICS,), without=LATENCY)
        _write_judgments(planned, place)
        for _, arm in planned.arms.values():
            arm.index.prepare(arm.pipeline.needs)
        times = _measure_time(planned, place, progress, say)
        return _conclude(planned, place, finished.per_query, times, conclude, progress, say)


def _measure_quality(planned: Plan, place: RunFolder, builder: ArmBuilder, say: Say) -> pd.DataFrame:
    """Measure what every arm finds, and write it; the results of arms that are already finished are read."""
    import pandas as pd

    place.table(measurements.TOPICS, _topics(planned.topics, planned.benchmark.document_qrels))
    _write_judgments(planned, place)
    surroundings = environment.describe()
    facts = pd.DataFrame([(t.qid, t.split, t.type) for t in planned.topics], columns=["qid", "split", "type"])
    frames: dict[str, pd.DataFrame] = {}
    for name, (_, arm) in planned.arms.items():
        if arm.pipeline.lasting and store.finished(place.path, name, arm_key(arm), say):
            arm.index.prepare(arm.pipeline.needs)
            frames[name] = pd.read_parquet(store.arm_path(place.path, name) / measurements.PER_QUERY)
    remaining = [pair for name, pair in planned.arms.items() if name not in frames]
    long = shown.watched() and _look_ahead(planned, remaining, builder)
    for outcome in execution.outcomes(remaining, planned.benchmark, planned.queries, builder.progress, say):
        each, arm = planned.arms[outcome.arm]
        arm.index.prepare(arm.pipeline.needs)
        files = place.arm(outcome.arm)
        frames[outcome.arm] = _write_arm(files, each, arm, outcome, planned.benchmark, facts, surroundings)
        for problem in live.problems(outcome.final):
            say(f"warning: arm '{outcome.arm}': {problem}")
        if long:
            provisional.refine(planned.shared, planned.benchmark, frames)
    read = {a.folder: a for _, arm in planned.arms.values() for a in _artefacts(arm) if a.built}
    if came := sum(each.manifest.get("vectors", {}).get("shipped", 0) for each in read.values()):
        rounding = {kind for each in read.values() for kind in each.manifest.get("numerics", {}).values() if kind}
        other = ", with other rounding than this processor," if len(rounding) > 1 else ""
        say(f"{came:,} passage vectors bundled with ragbench{other} are reused: cache.shipped=off recomputes them")
    return pd.concat([frames[name] for name in planned.arms], ignore_index=True)


def _look_ahead(planned: Plan, remaining: Sequence[tuple[Settings, Arm]], builder: ArmBuilder) -> bool:
    """Say what is to come, and show a first answer where the run takes long; whether it does."""
    arms = [arm for _, arm in remaining]
    if any(arm.pipeline.live for arm in arms):
        return False
    coming = forecast.forecast(arms, planned.queries, planned.shared.latency, keep=True)
    shown.expect(coming.steps)
    if not arms or coming.seconds - coming.timing < provisional.WORTH:
        return False
    given = [each for each, _ in remaining]
    provisional.show(given, planned.benchmark, planned.topics, builder, arms[0].index)
    return True


@dataclass(frozen=True)
class _Times:
    """The times of all arms by name, and the state of the machine while they were taken."""

    timings: Mapping[str, latency.Timing]
    machine: Mapping[str, Any] | None


def _measure_time(planned: Plan, place: RunFolder, progress: Progress | None, say: Say) -> _Times:
    """Time the queries of all arms but recorded ones, side by side and under load; write the times."""
    spec = planned.shared.latency
    arms = [arm for _, arm in planned.arms.values() if not arm.pipeline.recorded]
    timings, observed = _time_arms(arms, planned, progress, say) if spec.enabled and arms else ({}, None)
    local_arms = [arm for arm in arms if not arm.pipeline.live]
    under_load = open_loop.measure(local_arms, planned.queries, spec, progress) if timings and local_arms else []
    for name, timing in timings.items():
        place.arm(name).table("latency.parquet", timing.frame())
    if under_load:
        place.text(measurements.OPEN_LOOP, open_loop.table(under_load, timings, spec.seed).to_csv(index=False))
    return _Times(timings, observed)


def _conclude(
    planned: Plan,
    place: RunFolder,
    quality: pd.DataFrame,
    times: _Times,
    conclude: Callable[[Measurements], None],
    progress: Progress | None,
    say: Say,
) -> Measurements:
    """Write the summary and the verdicts, then start fresh processes, which no verdict reads; the record last."""
    shared, benchmark = planned.shared, planned.benchmark
    record = {
        "name": place.path.name,
        "command": planned.command,
        "arms": list(planned.arms),
        "overrides": {each.name: list(each.overrides) for each in planned.settings},
        "split": shared.split,
        "topics": len(planned.topics),
        "comparison": _record_comparison(planned),
        "benchmark": {
            "name": benchmark.name,
            "digest": benchmark.digest,
            "collection": benchmark.collection,
            "questions": benchmark.questions,
            "documents": len(benchmark.documents),
            "topics": benchmark.provenance,
            "version": benchmark.version,
        },
        "started": planned.started,
        "seconds": round(time.time() - planned.started, 3),
        "environment": environment.describe(),
        "latency": plain(shared.latency),
        "machine": times.machine,
        "peak_memory_bytes": coldstart.peak_memory_bytes(),
        "index_bytes": {name: sum(a.size_bytes for a in _artefacts(arm)) for name, (_, arm) in planned.arms.items()},
        "endpoints": usage.take_usage() if (usage := sys.modules.get("ragbench.models.usage")) else {},
        "models": {name: arm.pipeline.digests(arm.index) for name, (_, arm) in planned.arms.items()},
    }
    found = Measurements(place.path, record, quality, _write_latency(place, times, {}))
    place.text("summary.csv", found.summary(("split", "type")).to_csv(index=False))
    with store.errors_as_results_error(place.path):
        shown.report("comparing arms")
        conclude(found)
    local = [each for each, arm in planned.arms.values() if not arm.pipeline.live]
    cold = _cold_starts(planned, local, progress, say) if times.timings and shared.latency.cold_start else {}
    memory = {name: round(each.pop(coldstart.PEAK_MEMORY), 1) for name, each in cold.items()}
    record |= {"peak_memory_mb": memory, "seconds": round(time.time() - planned.started, 3)}
    table = _write_latency(place, times, cold)
    return replace(found, record=place.finish(record), latency=table)


def _write_latency(place: RunFolder, times: _Times, cold: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """The table of times, written where there are any."""
    table = _latency_table(times.timings, cold)
    if len(table):
        place.text("latency.csv", table.to_csv(index=False))
    return table


def _record_comparison(planned: Plan) -> int:
    """Record that the arms are compared on judged queries: the number of the comparison, 0 where there is none."""
    judged = planned.benchmark.document_qrels.keys() | planned.benchmark.section_qrels.keys()
    queries = [topic.qid for topic in planned.topics if topic.qid in judged]
    if len(planned.arms) < 2 or not queries:
        return 0
    shared = planned.shared
    arms = sorted(digest([arm.pipeline.fingerprint, arm.index.spec]) for _, arm in planned.arms.values())
    key = [primary(shared.config), arms]
    return comparisons.record(shared.ledger, planned.benchmark.name, queries, key, planned.command, list(planned.arms))


def _topics(topics: Sequence[Topic], qrels: Qrels) -> pd.DataFrame:
    rows = [(t.qid, t.split, t.type, t.text, t.need, topic_area(qrels.get(t.qid, {}))) for t in topics]
    return measurements.TOPIC_COLUMNS.frame(rows)


def _write_judgments(planned: Plan, place: RunFolder) -> None:
    """Write what is judged of the topics in TREC form, for the tools that read it beside the run files."""
    names = file_names(planned.benchmark)
    for name, qrels in ((DOCUMENTS, planned.benchmark.document_qrels), (SECTIONS, planned.benchmark.section_qrels)):
        judged = {topic.qid: qrels[topic.qid] for topic in planned.topics if topic.qid in qrels}
        named = {
            qid: {new_name(each, names): grade for each, grade in grades.items()} for qid, grades in judged.items()
        }
        place.text(name, qrels_text(named))
    if names:
        rows = io.StringIO(newline="")
        csv.writer(rows, lineterminator="\n").writerows([("docno", "path"), *names.items()])
        place.text(measurements.FILE_NAMES, rows.getvalue())


_RUN_FILES = {
    levels.DOCUMENT: measurements.DOCUMENTS,
    levels.SECTION: measurements.SECTIONS,
    levels.QUOTE: measurements.QUOTES,
}


def _write_arm(
    place: RunFolder,
    settings: Settings,
    arm: Arm,
    outcome: Outcome,
    benchmark: Benchmark,
    facts: pd.DataFrame,
    surroundings: Mapping[str, Any],
) -> pd.DataFrame:
    """Measure what one arm found and write its files."""
    import pandas as pd

    table, names = arm.index.chunks, file_names(benchmark)
    frames = []
    for level in levels.levels(outcome.final, table, benchmark):
        # Written without judgments, too: `ragbench data pool` reads from it what must still be judged.
        named = level.run if level.name == levels.QUOTE else renamed(level.run, names)
        place.text(_RUN_FILES[level.name], measurements.trec(named, "ragbench"))
        if level.name == levels.DOCUMENT or level.qrels:
            frames.append(level.evaluate(settings.measures, benchmark.unanswerable))
    units = passages.Passages(table, arm.index.encoder.count_tokens, benchmark.quotes_by_topic)
    frames.append(passages.evaluate(outcome.final, units, benchmark, settings.context_tokens))
    filled = [each for each in frames if len(each)] or frames[:1]  # pandas 2 warns of empty ones
    per_query = facts.merge(pd.concat(filled, ignore_index=True), on="qid")
    per_query.insert(0, "arm", settings.name)
    per_query = per_query[list(measurements.PER_QUERY_COLUMNS)]
    place.yaml("config.yaml", plain(settings.config), sort_keys=True)
    place.text("pipeline.txt", f"{arm.pipeline!r}\n")
    decided = Counter(note for state in outcome.final for note in state.notes)
    place.yaml(measurements.METADATA, {**_ir_metadata(settings, arm, benchmark, surroundings), "notes": dict(decided)})
    place.table(measurements.PER_QUERY, per_query)
    place.table(measurements.TOP, top_hits.top_hits(outcome.final, table, benchmark))
    place.table(measurements.SOURCES, source_rankings.frame(outcome, table))
    place.table(measurements.DIAGNOSIS, diagnosis.of_benchmark(outcome, table, benchmark))
    place.table(measurements.HEADROOM, headroom.headroom(outcome, table, benchmark.document_qrels))
    place.finish_arm(arm_key(arm))
    return per_query


def _ir_metadata(
    settings: Settings, arm: Arm, benchmark: Benchmark, surroundings: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The metadata that explains a run file (Breuer et al., ir_metadata, SIGIR 2022)."""
    return {
        "platform": {"software": {"libraries": {"python": surroundings["packages"]}}},
        "implementation": {"source": {"commit": (surroundings["git"] or {}).get("commit")}},
        "resources": {"artefacts": {a.kind: a.fingerprint for a in _artefacts(arm)}},
        "research goal": {"evaluation": {"reported measures": list(settings.measures)}},
        "data": {"test collection": {"name": benchmark.name, "digest": benchmark.digest}},
        "method": {"pipeline": [{"stage": n, "parameters": plain(s)} for n, s in arm.pipeline]},
    }


def _artefacts(arm: Arm) -> list[Artefact]:
    """The artefacts that the arm reads; its index may hold more for other arms."""
    return arm.index.artefacts(arm.pipeline.needs)


def _time_arms(
    arms: Sequence[Arm], planned: Plan, progress: Progress | None, say: Say
) -> tuple[dict[str, latency.Timing], dict[str, Any]]:
    """The times of every arm, and how busy the machine was while they were taken."""
    try:
        with Watch() as watch:
            timings = latency.measure(arms, timed_queries(planned), planned.shared.latency, progress)
    except LiveError as error:
        if not any(arm.pipeline.in_process for arm in arms):
            raise
        raise LiveError(
            f"{error}; latency is measured with reworded queries: answer any text, or measure quality only (quick=True)"
        ) from error.__cause__
    observed = watch.record()
    if observed["busy"]:
        say(f"warning: {observed['busy']}: added times are less certain by that; run it again on a quiet machine")
    return timings, observed


def timed_queries(planned: Plan) -> list[Query]:
    """The queries to time: the topics of the run, and as many others as `latency.queries` lacks.

    Time needs no judgments, so the other topics of the benchmark serve, and then queries derived from its documents.
    """
    wanted, found = planned.shared.latency.queries, list(planned.queries)
    if len(found) < wanted:
        asked = {query.qid for query in found}
        found += [topic.query() for topic in planned.benchmark.topics if topic.qid not in asked]
    if len(found) < wanted and (derive := plugins.hook("derived_queries")):
        # The documents may give none: fewer queries are timed, and the cost says how many are lacking.
        found += derive(planned.benchmark.documents, wanted, planned.benchmark.name)
    return found if len(planned.queries) >= wanted else found[:wanted]


def _cold_starts(
    planned: Plan, settings: Sequence[Settings], progress: Progress | None, say: Say
) -> dict[str, dict[str, float]]:
    """The times of a first query by arm; an arm whose cold start fails costs a warning, not the run."""
    measured: dict[str, dict[str, float]] = {}
    for each in shown.steps("starting cold", settings, progress):
        try:
            measured[each.name] = dict(coldstart.measure(each, planned.queries[0].text, planned.benchmark))
        except RagbenchError as error:
            say(f"warning: the cold start of '{each.name}' was not measured ({error}); all other results are complete")
    return measured


def _latency_table(timings: Mapping[str, latency.Timing], cold: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    import pandas as pd

    rows = [row for timing in timings.values() for row in timing.table()]
    rows += [
        {"arm": name, "stage": f"cold {what}", "p50": value}
        for name, each in cold.items()
        for what, value in each.items()
    ]
    return pd.DataFrame(rows) if rows else pd.DataFrame({"arm": [], "stage": []})


def arm_key(arm: Arm) -> str:
    """The identity of what an arm measures, whatever its folder."""
    return digest([arm.name, arm.pipeline.fingerprint, arm.index.spec, arm.index.collection])
