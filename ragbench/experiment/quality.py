"""Step 1 of a run: what every arm finds, measured and written."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragbench.base import progress as shown
from ragbench.base.fingerprint import plain
from ragbench.benchmark.benchmark import Benchmark, Qrels, Topic, topic_area
from ragbench.benchmark.documents import file_names
from ragbench.benchmark.native import DOCUMENTS, SECTIONS, qrels_text
from ragbench.benchmark.runs import new_name, renamed
from ragbench.config.arm_builder import Say
from ragbench.config.settings import Settings
from ragbench.evaluation import diagnosis, headroom, levels, passages, source_rankings
from ragbench.experiment import execution, forecast
from ragbench.experiment.plan import Plan, Run, arm_key, artefacts
from ragbench.results import environment, measurements, store, top_hits
from ragbench.results.store import RunFolder
from ragbench.search.stages import live

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.search.engine.executor import Arm, Outcome


_LONG = 60.0
"""Seconds from which the time of a run is printed before it starts."""
_RUN_FILES = {
    levels.DOCUMENT: measurements.DOCUMENTS,
    levels.SECTION: measurements.SECTIONS,
    levels.QUOTE: measurements.QUOTES,
}


def measure(run: Run) -> None:
    """Measure what every arm finds, and write it; the results of arms that are already finished are read."""
    import pandas as pd

    planned, place, builder, say = run.plan, run.place, run.builder, run.say

    place.table(measurements.TOPICS, _topics(planned.topics, planned.benchmark.document_qrels))
    write_judgments(planned, place)
    surroundings = environment.describe()
    facts = pd.DataFrame([(t.qid, t.split, t.type) for t in planned.topics], columns=["qid", "split", "type"])
    frames: dict[str, pd.DataFrame] = {}
    for name, (_, arm) in planned.arms.items():
        if arm.pipeline.lasting and store.finished(place.path, name, arm_key(arm), say):
            arm.index.prepare(arm.pipeline.needs)
            frames[name] = pd.read_parquet(store.arm_path(place.path, name) / measurements.PER_QUERY)
    remaining = [pair for name, pair in planned.arms.items() if name not in frames]
    if shown.watched():
        _look_ahead(planned, remaining, say)
    for outcome in execution.outcomes(remaining, planned.benchmark, planned.queries, builder.progress, say):
        each, arm = planned.arms[outcome.arm]
        arm.index.prepare(arm.pipeline.needs)
        files = place.arm(outcome.arm)
        frames[outcome.arm] = _write_arm(files, each, arm, outcome, planned.benchmark, facts, surroundings)
        for problem in live.problems(outcome.final):
            say(f"warning: arm '{outcome.arm}': {problem}")
    read = {a.folder: a for _, arm in planned.arms.values() for a in artefacts(arm) if a.built}
    if came := sum(each.manifest.get("vectors", {}).get("shipped", 0) for each in read.values()):
        rounding = {kind for each in read.values() for kind in each.manifest.get("numerics", {}).values() if kind}
        other = ", with other rounding than this CPU," if len(rounding) > 1 else ""
        say(f"{came:,} passage vectors bundled with ragbench{other} are reused: cache.shipped=off recomputes them")
    run.quality = pd.concat([frames[name] for name in planned.arms], ignore_index=True)


def _look_ahead(planned: Plan, remaining: Sequence[tuple[Settings, Arm]], say: Say) -> None:
    """Announce the steps to come and their time."""
    arms = [arm for _, arm in remaining]
    if not any(arm.pipeline.live for arm in arms):
        coming = forecast.forecast(arms, planned.queries, planned.shared.latency, keep=True)
        shown.expect(coming.steps)
        if coming.seconds > _LONG:
            say(f"this run takes {coming.sentence}")


def _topics(topics: Sequence[Topic], qrels: Qrels) -> pd.DataFrame:
    rows = [(t.qid, t.split, t.type, t.text, t.need, topic_area(qrels.get(t.qid, {}))) for t in topics]
    return measurements.TOPIC_COLUMNS.frame(rows)


def write_judgments(planned: Plan, place: RunFolder) -> None:
    """Write what is judged of the topics in TREC form, for the tools that read it next to the run files."""
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
        "resources": {"artefacts": {a.kind: a.fingerprint for a in artefacts(arm)}},
        "research goal": {"evaluation": {"reported measures": list(settings.measures)}},
        "data": {"test collection": {"name": benchmark.name, "digest": benchmark.digest}},
        "method": {"pipeline": [{"stage": n, "parameters": plain(s)} for n, s in arm.pipeline]},
    }
