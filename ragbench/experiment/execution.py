"""Where the arms of a plan are computed: `local` is this process; entry points `execution.NAME` add others."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from ragbench.base import registry
from ragbench.base.types import FAILURES, ArmsFailed, RagbenchError, unusable
from ragbench.config.sections import LOCAL
from ragbench.experiment.estimate import embed
from ragbench.search.engine.pipeline import Session, execute

if TYPE_CHECKING:
    from ragbench.base.types import Query
    from ragbench.config.sections import ExecutionSpec
    from ragbench.experiment.evaluate import ArmEvaluator, Evaluated
    from ragbench.experiment.run import Plan
    from ragbench.search.engine.pipeline import Arm, Outcome

_LOG = logging.getLogger(__name__)

Execution = Callable[["Plan", "ArmEvaluator"], Iterator["Evaluated"]]
"""Computes and evaluates the arms of a plan: what each found, measured, in any order, as soon as it is ready.

An arm that fails must not stop the others: `failed` gives the error to raise after the last outcome.
"""


class Workers(Protocol):
    """Other processes that compute groups of arms over the same queries."""

    def submit(self, arms: Sequence[Arm]) -> None:
        """Let one of them compute arms."""

    def __iter__(self) -> Iterator[tuple[Sequence[Arm], Mapping[str, Outcome | BaseException]]]:
        """Each group with outcomes or errors by name, when it is ready; none of an arm that was lost."""


def workers(
    spec: ExecutionSpec, arms: Sequence[Arm], queries: Sequence[Query]
) -> AbstractContextManager[Workers | None]:
    """The workers of an execution, for arms such as these, or None: the hook `NAME_workers` makes them."""
    make = registry.find("hook", f"{spec.kind}_workers")
    return make(spec, arms, queries) if make else nullcontext()


def evaluated(plan: Plan, evaluator: ArmEvaluator) -> Iterator[Evaluated]:
    """Compute and evaluate the arms of a plan where its `execution` says, and yield each as it finishes.

    Raises ArmsFailed after the last one when some could not be computed.
    """
    execution: Execution = local
    if plan.execution.kind != LOCAL:
        execution = registry.load("execution", plan.execution.kind, "execution.kind")
    if plan.arms:
        yield from execution(plan, evaluator)


def local(plan: Plan, evaluator: ArmEvaluator) -> Iterator[Evaluated]:
    """Compute and evaluate the arms in this process."""
    for outcome in _outcomes(plan):
        yield evaluator(plan.arms[outcome.arm], outcome)


def _outcomes(plan: Plan) -> Iterator[Outcome]:
    """Compute the arms, each distinct prefix of their pipelines once."""
    arms, finished = list(plan.arms.values()), set()
    embed(plan.missing)
    try:
        for outcome in execute(arms, plan.queries):
            finished.add(outcome.arm)
            yield outcome
        return
    except FAILURES:
        if len(arms) == 1:
            raise
    # One branch of the tree failed: run every remaining arm alone, so that the others are still computed.
    session, errors = Session(plan.queries), {}
    for arm in arms:
        if arm.name not in finished:
            try:
                yield session.outcome(arm)
            except FAILURES as error:
                errors[arm.name] = error
    if errors:
        raise failed(plan, errors) from next(iter(errors.values()))


def failed(plan: Plan, errors: Mapping[str, BaseException]) -> ArmsFailed:
    """The error that reports the arms of a plan which failed, with the reason of the first; each is logged in full."""
    for name, error in errors.items():
        details = "" if isinstance(error, RagbenchError | OSError) else "".join(traceback.format_exception(error))
        _LOG.warning(f"arm '{name}' failed: {_reason(error)}\n{details}".rstrip())
    names = ", ".join(f"'{name}'" for name in errors)
    reason = _reason(next(iter(errors.values()))).rstrip(".")
    return ArmsFailed(
        f"{len(errors)} of {len(plan.arms)} arms failed ({names}: {reason}); the others are written, "
        "and the same command tries again only what is missing"
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, RagbenchError):
        return str(error)
    if isinstance(error, OSError):
        return unusable(error)
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
