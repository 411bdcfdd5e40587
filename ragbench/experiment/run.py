"""Run arms over a benchmark: quality, then speed, then files; MLflow afterwards, from the files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.configuration import Settings
from ragbench.evaluation import diagnosis, measures
from ragbench.experiment import environment, execution, results, top
from ragbench.experiment.results import Results
from ragbench.fingerprint import digest, plain
from ragbench.timing import coldstart, latency, open_loop
from ragbench.workshop import Progress, Say, Workshop, fetch_caches, share_caches

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.engine.executor import Arm, Outcome
    from ragbench.index.artefacts import Artefact

PLAN, DONE = "plan.json", "done.json"


def run(
    settings: Sequence[Settings],
    benchmark: Benchmark,
    *,
    command: str = "run",
    folder: Path | None = None,
    conclude: Callable[[Results], None] = lambda found: None,
    progress: Progress | None = None,
    say: Say = print,
) -> Results:
    """Measure every arm on the benchmark and write the results folder.

    The first of the settings decides what all share: split, measures, the way time is measured, where files go.
    `conclude` writes further files before the record, with which the experiment counts as finished.
    """
    import pandas as pd

    shared = settings[0]
    measures.check(shared.measures)
    topics = benchmark.select(shared.split)
    queries = [topic.query() for topic in topics]
    workshop = Workshop.of(shared, benchmark, progress, say)
    fetch_caches(workshop.store, workshop.models)
    arms = workshop.arms(settings)
    plan = plan_digest(command, benchmark, shared, arms)
    folder = folder or _folder(shared.results, command, settings, plan, say)
    results.write_text(folder / PLAN, json.dumps({"digest": plan, "arms": [arm.name for arm in arms]}))
    results.write_table(folder / results.TOPICS, _topics(topics))
    started = time.time()
    surroundings = environment.describe()
    by_name = {each.name: (each, arm) for each, arm in zip(settings, arms, strict=True)}
    facts = pd.DataFrame([(t.qid, t.split, t.type) for t in topics], columns=["qid", "split", "type"])
    frames = {arm.name: frame for arm in arms if (frame := finished(folder, arm)) is not None}
    for arm in arms:
        if arm.name in frames:
            arm.index.prepare(arm.pipeline.needs)
    left = [pair for name, pair in by_name.items() if name not in frames]
    for outcome in execution.outcomes(left, benchmark, queries, progress, say):
        each, arm = by_name[outcome.arm]
        arm.index.prepare(arm.pipeline.needs)
        frames[outcome.arm] = _write_arm(folder, each, arm, outcome, benchmark, facts, surroundings)
    timings = latency.measure(arms, queries, shared.latency, progress) if shared.latency.enabled else {}
    cold = _cold_starts(settings, queries[0].text, progress) if timings and shared.latency.cold_start else {}
    memory = {name: round(each.pop(coldstart.PEAK_MEMORY), 1) for name, each in cold.items()}
    times = _latency_table(timings, cold)
    served = open_loop.measure(arms, queries, shared.latency, progress) if timings else []
    record = {
        "name": folder.name,
        "command": command,
        "arms": [each.name for each in settings],
        "overrides": {each.name: list(each.overrides) for each in settings},
        "split": shared.split,
        "topics": len(topics),
        "benchmark": {
            "name": benchmark.name,
            "digest": benchmark.digest,
            "documents": len(benchmark.documents),
            "topics": benchmark.provenance,
            "version": benchmark.version,
        },
        "started": started,
        "seconds": round(time.time() - started, 3),
        "environment": surroundings,
        "latency": plain(shared.latency),
        "peak_memory_bytes": coldstart.peak_memory_bytes(),
        "peak_memory_mb": memory,
        "index_bytes": {arm.name: sum(a.size_bytes for a in _artefacts(arm)) for arm in arms},
        "models": {arm.name: arm.pipeline.digests(arm.index) for arm in arms},
    }
    for name, timing in timings.items():
        results.write_table(folder / "arms" / results.slug(name) / "latency.parquet", timing.frame())
    outcome_results = Results(folder, record, pd.concat([frames[s.name] for s in settings], ignore_index=True), times)
    if len(times):
        results.write_text(folder / "latency.csv", times.to_csv(index=False))
    if served:
        frame = open_loop.table(served, timings, shared.latency.seed)
        results.write_text(folder / results.OPEN_LOOP, frame.to_csv(index=False))
    results.write_text(folder / "summary.csv", outcome_results.summary(("split", "type")).to_csv(index=False))
    conclude(outcome_results)
    results.write_text(folder / results.RECORD, json.dumps(record, indent=1, default=str))
    share_caches(workshop.store, workshop.models)
    return outcome_results


def _topics(topics: Sequence[Topic]) -> pd.DataFrame:
    import pandas as pd

    columns = ["qid", "split", "type", "text", "need"]
    return pd.DataFrame([(t.qid, t.split, t.type, t.text, t.need) for t in topics], columns=columns)


def _write_arm(
    folder: Path,
    settings: Settings,
    arm: Arm,
    outcome: Outcome,
    benchmark: Benchmark,
    facts: pd.DataFrame,
    surroundings: Mapping[str, Any],
) -> pd.DataFrame:
    """Measure one finished arm and write its files; `done.json` comes last."""
    import pandas as pd

    place = folder / "arms" / results.slug(settings.name)
    table = arm.index.chunks
    levels = {
        "document": (measures.document_run(outcome.final, table), benchmark.document_qrels, "run.trec"),
        "section": (measures.section_run(outcome.final, table), benchmark.section_qrels, "sections.trec"),
    }
    frames = []
    for level, (run_, qrels, file) in levels.items():
        # Also without judgments: `ragbench pool` reads what has still to be judged from there.
        results.write_text(place / file, results.trec(run_, "ragbench"))
        if level == "document" or qrels:
            frame = measures.evaluate(run_, qrels, settings.measures)
            frame.insert(0, "level", level)
            frames.append(frame)
    per_query = facts.merge(pd.concat(frames, ignore_index=True), on="qid")
    per_query.insert(0, "arm", settings.name)
    per_query = per_query[list(results.PER_QUERY_COLUMNS)]
    results.write_yaml(place / "config.yaml", plain(settings.config), sort_keys=True)
    results.write_text(place / "pipeline.txt", f"{arm.pipeline!r}\n")
    results.write_yaml(place / "metadata.yaml", _ir_metadata(settings, arm, benchmark, surroundings))
    results.write_table(place / "per_query.parquet", per_query)
    results.write_table(place / results.TOP, top.top_hits(outcome.final, table, benchmark))
    if benchmark.section_qrels:
        results.write_table(place / results.DIAGNOSIS, diagnosis.diagnose(outcome, table, benchmark.section_qrels))
    results.write_text(place / DONE, json.dumps({"arm": _arm_digest(arm)}))
    return per_query


def _ir_metadata(
    settings: Settings, arm: Arm, benchmark: Benchmark, surroundings: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What a run file needs beside it to be understood (Breuer et al., ir_metadata, SIGIR 2022)."""
    return {
        "platform": {"software": {"libraries": {"python": surroundings["packages"]}}},
        "implementation": {"source": {"commit": (surroundings["git"] or {}).get("commit")}},
        "resources": {"artefacts": {a.kind: a.fingerprint for a in _artefacts(arm)}},
        "research goal": {"evaluation": {"reported measures": list(settings.measures)}},
        "data": {"test collection": {"name": benchmark.name, "digest": benchmark.digest}},
        "method": {"pipeline": [{"stage": n, "parameters": plain(s)} for n, s in arm.pipeline]},
    }


def _artefacts(arm: Arm) -> list[Artefact]:
    """Those the arm reads; its index may hold more for others."""
    return arm.index.artefacts(arm.pipeline.needs)


def _cold_starts(settings: Sequence[Settings], text: str, progress: Progress | None) -> dict[str, dict[str, float]]:
    found = {}
    for each in settings:
        found[each.name] = dict(coldstart.measure(each, text))
        if progress is not None:
            progress("starting cold", len(found), len(settings))
    return found


def _latency_table(timings: Mapping[str, latency.Timing], cold: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    import pandas as pd

    rows = [
        {"arm": name, "stage": stage, **latency.percentiles(timing.samples_ms[:, place])}
        for name, timing in timings.items()
        for place, stage in enumerate(timing.columns)
    ]
    rows += [
        {"arm": name, "stage": f"cold {what}", "p50": value}
        for name, each in cold.items()
        for what, value in each.items()
    ]
    return pd.DataFrame(rows) if rows else pd.DataFrame({"arm": [], "stage": []})


def plan_digest(command: str, benchmark: Benchmark, shared: Settings, arms: Sequence[Arm]) -> str:
    """What must be equal for an experiment to be the same: what is measured on what, not how fast or where."""
    return digest([command, benchmark.digest, shared.split, shared.measures, [_arm_digest(arm) for arm in arms]])


def _arm_digest(arm: Arm) -> str:
    return digest([arm.name, arm.pipeline.fingerprint, arm.index.spec, arm.index.collection])


def finished(folder: Path, arm: Arm) -> pd.DataFrame | None:
    """The measured queries of an arm that a stopped experiment had finished, None when it had not."""
    import pandas as pd

    place = folder / "arms" / results.slug(arm.name)
    if not (place / DONE).is_file() or json.loads((place / DONE).read_text())["arm"] != _arm_digest(arm):
        return None
    return pd.read_parquet(place / "per_query.parquet")


def stopped(root: Path, plan: str) -> Path | None:
    """The folder of the same experiment below `root` when it was stopped before its end."""
    for record in sorted(root.glob(f"runs/*/{PLAN}")):
        if json.loads(record.read_text())["digest"] == plan and not (record.parent / results.RECORD).exists():
            return record.parent
    return None


def _folder(root: Path, command: str, settings: Sequence[Settings], plan: str, say: Say) -> Path:
    """A new folder, or that of the same experiment when it was stopped before its end."""
    if (begun := stopped(root, plan)) is not None:
        say(f"continuing the stopped experiment in {begun}")
        return begun
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = results.slug(settings[0].name) if len(settings) == 1 else f"{len(settings)}-arms"
    folder = root / "runs" / f"{stamp}-{command}-{name}"
    suffix = 1
    while folder.exists():
        suffix += 1
        folder = root / "runs" / f"{stamp}-{command}-{name}-{suffix}"
    return folder
