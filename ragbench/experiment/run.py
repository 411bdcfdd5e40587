"""Run arms over a benchmark, step by step: quality, times, verdicts, cold starts, record; MLflow reads the files."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ragbench.base.errors import ResultsError
from ragbench.base.fingerprint import digest
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.native import files_of_judged
from ragbench.config.arm_builder import ArmBuilder
from ragbench.config.settings import Settings
from ragbench.evidence.arms import LATENCY
from ragbench.experiment import steps
from ragbench.experiment.plan import Plan, Run, plan
from ragbench.results import labels, measurements, store, verdicts
from ragbench.results.measurements import Measurements

_STEPS: Sequence[Callable[[Run], None]] = (
    steps.measure_quality,
    steps.time_arms,
    steps.judge,
    steps.start_cold,
    steps.record,
)


def run(
    settings: Sequence[Settings],
    benchmark: Benchmark,
    *,
    command: str = "run",
    folder: Path | None = None,
    only: Collection[str] | None = None,
    conclude: Callable[[Measurements], None] = verdicts.against_first,
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
    conclude: Callable[[Measurements], None] = verdicts.against_first,
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
