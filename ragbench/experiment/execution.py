"""Run the arms of an experiment in this process, or in several processes that keep what they have loaded.

`execution=local` walks the prefix tree in this process. `joblib` splits the tree into as many groups of
neighbouring arms as there are workers; a worker runs its group arm by arm, reusing what the arms before computed, and
takes arms from the longest remaining group when its own is done. Every outcome is returned as soon as it is ready. An
arm that fails, or whose process dies, is tried again; if it fails again, `ArmsFailed` reports it after all others are
done. The results are the same bytes in every case.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from ragbench.base.errors import ArmsFailed
from ragbench.base.extensions import FAILURES
from ragbench.base.fingerprint import digest
from ragbench.base.pools import Failure, LocalPool
from ragbench.base.progress import task_ticks
from ragbench.config.execution_backends import Execution, execution_of
from ragbench.config.sections import LOCAL
from ragbench.experiment import worker
from ragbench.experiment.worker import Job
from ragbench.models.parallel import threads_for
from ragbench.search.engine import executor

if TYPE_CHECKING:
    from ragbench.base.pools import Pool
    from ragbench.experiment.plan import Plan, PlannedArm
    from ragbench.search.engine.executor import Outcome

_LOG = logging.getLogger(__name__)

EXECUTION = Execution(lambda count, begin, spec: LocalPool(count, begin))


def outcomes(plan: Plan) -> Iterator[Outcome]:
    """Run the arms of a plan and yield each as it finishes.

    Raises ArmsFailed after the last one when some could not be computed.
    """
    if not plan.arms:
        return
    failed: list[Failure] = []
    answers = _in_this_process(plan) if plan.execution.kind == LOCAL else _in_workers(plan)
    for answer in answers:
        if isinstance(answer, Failure):
            _LOG.warning(f"arm '{answer.task}' failed: {answer.reason}\n{answer.details}".rstrip())
            failed.append(answer)
        else:
            yield answer
    if failed:
        names = ", ".join(f"'{failure.task}'" for failure in failed)
        reason = failed[0].reason.rstrip(".")
        raise ArmsFailed(
            f"{len(failed)} of {len(plan.arms)} arms failed ({names}: {reason}); the others are written, "
            "and the same command tries again only what is missing"
        ) from failed[0].error


def _in_this_process(plan: Plan) -> Iterator[Outcome | Failure]:
    arms, finished = list(plan.arms.values()), set()
    try:
        for outcome in executor.execute(arms, plan.queries):
            finished.add(outcome.arm)
            yield outcome
        return
    except FAILURES:
        if len(arms) == 1:
            raise
    # One branch of the tree failed: run every remaining arm alone, so that the others are still computed.
    session = executor.Session(plan.queries, plan.execution.memory_mb << 20)
    for arm in arms:
        if arm.name not in finished:
            try:
                yield session.outcome(arm)
            except FAILURES as error:
                yield replace(Failure.of(arm.name, error), error=error)


def _in_workers(plan: Plan) -> Iterator[Outcome | Failure]:
    spec, arms = plan.execution, list(plan.arms.values())
    workers = min(spec.workers or threads_for(None), len(arms))
    job = Job.of(plan, max(1, threads_for(None) // workers))
    with execution_of(spec).pool(workers, (worker.begin, job), spec) as ready:
        tick = task_ticks("running arms", len(arms))
        for answer in dispatch(groups(arms, ready.count), ready, spec.retries):
            tick(1)
            yield answer


def dispatch(parts: Sequence[Sequence[PlannedArm]], workers: Pool, retries: int) -> Iterator[Outcome | Failure]:
    """Give every worker its group, arm by arm; a worker whose group is done takes the last arm of the longest group."""
    waiting = [deque(part) for part in parts]
    attempts: Counter[str] = Counter()
    running: dict[Future[Outcome | Failure], tuple[int, PlannedArm]] = {}

    def start_next(number: int) -> None:
        longest = max(waiting, key=len)
        if waiting[number] or longest:
            arm = waiting[number].popleft() if waiting[number] else longest.pop()
            running[workers.submit(number, worker.run, arm.name, arm.config)] = (number, arm)

    for number in range(len(parts)):
        start_next(number)
    while running:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            number, arm = running.pop(future)
            attempts[arm.name] += 1
            death = future.exception()
            if death is not None:
                answer: Outcome | Failure = Failure(
                    arm.name, f"its process died ({Failure.of(arm.name, death).reason})"
                )
                workers.restart(number)
            else:
                answer = future.result()
            retry = isinstance(answer, Failure) and attempts[arm.name] <= retries
            if retry:
                _LOG.warning(f"arm '{arm.name}' failed and is tried again: {answer.reason}")  # type: ignore[union-attr]
                waiting[number].append(arm)
            start_next(number)
            if not retry:
                yield answer


def groups(arms: Sequence[PlannedArm], count: int) -> list[list[PlannedArm]]:
    """At most `count` groups of about equal work, arms that share long prefixes in one, none of them empty."""
    keys = {arm.name: _keys(arm) for arm in arms}
    ordered = executor.in_tree_order(arms, keys)
    shared = [0, *(len({*keys[before.name]} & {*keys[arm.name]}) for before, arm in pairwise(ordered))]
    costs = [max(1, len(keys[arm.name]) - overlap) for arm, overlap in zip(ordered, shared, strict=True)]
    totals = [0, *accumulate(costs)]
    share = totals[-1] / count
    cuts = {0, len(ordered)}
    for number in range(1, count):
        # Near the place that makes groups equal, cut where the arms on both sides have least in common.
        gaps = {i: abs(totals[i] - number * share) for i in range(1, len(ordered))}
        near = [i for i in gaps if gaps[i] <= share / 4] or sorted(gaps, key=gaps.__getitem__)[:1]
        cuts |= set(sorted(near, key=lambda i: (shared[i], gaps[i]))[:1])
    return [ordered[begin:end] for begin, end in pairwise(sorted(cuts))]


def _keys(arm: PlannedArm) -> list[str]:
    """A key for each prefix, with the index specification where the executor's key has the artefacts of the index."""
    keys = (
        digest([type(stage).__module__, stage, arm.index.spec if stage.needs else None]) for _, stage in arm.pipeline
    )
    return list(accumulate(keys))
