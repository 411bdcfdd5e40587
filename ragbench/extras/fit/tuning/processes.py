"""Searches side by side: this process, and others that share its journal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragbench.base.pools import Failure, LocalPool, Pool, run_captured
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.arm_builder import ArmBuilder, Say
from ragbench.config.execution_backends import execution_of
from ragbench.config.sections import LOCAL, ExecutionSpec
from ragbench.config.settings import Settings
from ragbench.extras.fit.tuning import study
from ragbench.extras.fit.tuning.objective import TrainingValues
from ragbench.extras.fit.tuning.study import Rules, Search
from ragbench.models.parallel import threads_for


def search_all(
    rules: Rules,
    train: Benchmark,
    searches: Sequence[Search],
    values: TrainingValues,
    journal: Path,
    processes: int,
    say: Say,
) -> dict[str, Any]:
    """Run all searches to their end, in this process and in others next to it; returns Optuna's studies by name.

    The others are `processes` - 1 processes of this machine, or those of the execution.
    """
    storage = study.open_storage(journal)
    studies = {search.name: study.open_study(storage, search, rules, values.base) for search in searches}
    begun = {name: study.trials_in(opened, "RUNNING") for name, opened in studies.items()}  # before others begin theirs
    memory, execution = sum(session.limit_bytes for session in values.sessions), values.base.execution
    count = _count(processes, execution)
    jobs = [
        (values.base, rules, train, _rotate(searches, n, count), journal.absolute(), memory, n) for n in range(1, count)
    ]
    with _pool(len(jobs), execution) as pool:
        others = [pool.submit(n % pool.count, run_captured, "", _beside, *job) for n, job in enumerate(jobs)]
        for search in searches:
            study.optimise(studies[search.name], search, rules, values, begun=begun[search.name])
        ended = [future.exception() or future.result() for future in others]
        failed = [
            result if isinstance(result, Failure) else Failure.of("", result) for result in ended if result is not None
        ]
        for failure in failed:
            print(failure.details or failure.reason, file=sys.stderr)
        if failed:
            say("a process of the search failed (see above); the others did its trials")
    return studies


def _count(processes: int, execution: ExecutionSpec) -> int:
    """How many processes search, including this one: at least as many as `execution` has workers."""
    if execution.kind == LOCAL:
        return processes
    return max(processes, execution.workers or threads_for(None))


def _pool(count: int, execution: ExecutionSpec) -> Pool:
    """Other processes: those of the execution, or of this machine."""
    if execution.kind == LOCAL or count == 0:
        return LocalPool(count)
    return execution_of(execution).pool(count, (), execution)


def _beside(
    base: Settings,
    rules: Rules,
    train: Benchmark,
    searches: Sequence[Search],
    journal: Path,
    memory: float,
    number: int,
) -> None:
    """Take part in the searches, in another process with another Java machine."""
    measures = [objective.measure for objective in rules.objectives if objective.measure is not None]
    builder = ArmBuilder.of(base, train)
    values = TrainingValues(base, rules.parameters, train, builder, measures, memory)
    storage = study.open_storage(journal)
    for search in searches:
        opened = study.open_study(storage, search, rules, base)
        study.optimise(opened, search, rules, values, process=number)


def _rotate(searches: Sequence[Search], number: int, processes: int) -> list[Search]:
    """The searches in another order for every process, so that two work on the same one as late as possible."""
    begin = number * len(searches) // processes
    return [*searches[begin:], *searches[:begin]]
