"""Steps 3 and 5 of a run: the verdicts, which read no cold start, and the record that ends the experiment."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from ragbench.base import progress as shown
from ragbench.base.fingerprint import digest, plain
from ragbench.evidence.policy import primary
from ragbench.experiment import coldstart
from ragbench.experiment.plan import Plan, Run, artefacts
from ragbench.experiment.times import write_table
from ragbench.results import comparisons, environment, store
from ragbench.results.measurements import Measurements


def judge(run: Run) -> None:
    """Write the summary and the verdicts."""
    plan, shared, benchmark = run.plan, run.plan.shared, run.plan.benchmark
    run.record = {
        "name": run.place.path.name,
        "command": plan.command,
        "arms": list(plan.arms),
        "overrides": {each.name: list(each.overrides) for each in plan.settings},
        "split": shared.split,
        "topics": len(plan.topics),
        "comparison": _record_comparison(plan),
        "benchmark": {
            "name": benchmark.name,
            "digest": benchmark.digest,
            "collection": benchmark.collection,
            "questions": benchmark.questions,
            "documents": len(benchmark.documents),
            "topics": benchmark.provenance,
            "version": benchmark.version,
        },
        "started": plan.started,
        "seconds": round(time.time() - plan.started, 3),
        "environment": environment.describe(),
        "latency": plain(shared.latency),
        "machine": run.machine,
        "peak_memory_bytes": coldstart.peak_memory_bytes(),
        "index_bytes": {name: sum(a.size_bytes for a in artefacts(arm)) for name, (_, arm) in plan.arms.items()},
        "endpoints": usage.take_usage() if (usage := sys.modules.get("ragbench.models.usage")) else {},
        "models": {name: arm.pipeline.digests(arm.index) for name, (_, arm) in plan.arms.items()},
    }
    assert run.quality is not None, "quality is measured first"
    found = Measurements(run.place.path, run.record, run.quality, write_table(run))
    run.place.text("summary.csv", found.summary(("split", "type")).to_csv(index=False))
    with store.errors_as_results_error(run.place.path):
        shown.report("comparing arms")
        run.conclude(found)
    run.measurements = found


def record(run: Run) -> None:
    """Write the record, which ends the experiment."""
    assert run.measurements is not None, "arms are judged before the record is written"
    memory = {name: round(each.pop(coldstart.PEAK_MEMORY), 1) for name, each in run.cold.items()}
    run.record |= {"peak_memory_mb": memory, "seconds": round(time.time() - run.plan.started, 3)}
    table = write_table(run)
    run.measurements = replace(run.measurements, record=run.place.finish(run.record), latency=table)


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
