"""Steps 2 and 4 of a run: the latency of every arm, and of a first query in a fresh process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragbench.base import plugins
from ragbench.base import progress as shown
from ragbench.base.errors import LiveError, RagbenchError
from ragbench.base.types import Query
from ragbench.config.arm_builder import Progress, Say
from ragbench.evaluation import latency, open_loop
from ragbench.evaluation.machine import Watch
from ragbench.experiment import coldstart
from ragbench.experiment.plan import Plan, Run
from ragbench.results import measurements

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.search.engine.executor import Arm


def measure(run: Run) -> None:
    """Time the queries of all arms but recorded ones, side by side and under load; write the times."""
    spec = run.plan.shared.latency
    arms = [arm for _, arm in run.plan.arms.values() if not arm.pipeline.recorded]
    if not spec.enabled or not arms:
        return
    run.timings, run.machine = _time_arms(arms, run.plan, run.progress, run.say)
    local_arms = [arm for arm in arms if not arm.pipeline.live]
    under_load = open_loop.measure(local_arms, run.plan.queries, spec, run.progress) if local_arms else []
    for name, timing in run.timings.items():
        run.place.arm(name).table("latency.parquet", timing.frame())
    if under_load:
        run.place.text(measurements.OPEN_LOOP, open_loop.table(under_load, run.timings, spec.seed).to_csv(index=False))


def start_cold(run: Run) -> None:
    """Measure a first query of every arm in a fresh process; one that fails costs a warning, not the run."""
    settings = [each for each, arm in run.plan.arms.values() if not arm.pipeline.live]
    if not run.timings or not run.plan.shared.latency.cold_start:
        return
    measured: dict[str, dict[str, float]] = {}
    for each in shown.steps("starting cold", settings, run.progress):
        try:
            measured[each.name] = dict(coldstart.measure(each, run.plan.queries[0].text, run.plan.benchmark))
        except RagbenchError as error:
            run.say(
                f"warning: the cold start of '{each.name}' was not measured ({error}); all other results are complete"
            )
    run.cold = measured


def _time_arms(
    arms: Sequence[Arm], planned: Plan, progress: Progress | None, say: Say
) -> tuple[dict[str, latency.Timing], dict[str, Any]]:
    """The times of every arm, and how busy the machine was while they were taken."""
    try:
        with Watch() as watch:
            timings = latency.measure(arms, _timed_queries(planned), planned.shared.latency, progress)
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


def _timed_queries(planned: Plan) -> list[Query]:
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


def write_table(run: Run) -> pd.DataFrame:
    """The table of times, which is written where there are any."""
    import pandas as pd

    rows = [row for timing in run.timings.values() for row in timing.table()]
    rows += [
        {"arm": name, "stage": f"cold {what}", "p50": value}
        for name, each in run.cold.items()
        for what, value in each.items()
    ]
    table = pd.DataFrame(rows) if rows else pd.DataFrame({"arm": [], "stage": []})
    if len(table):
        run.place.text("latency.csv", table.to_csv(index=False))
    return table
