"""Where arms are computed besides this process: what an entry point of the group `ragbench.executions` names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ragbench.config.sections import ExecutionSpec
    from ragbench.config.settings import Settings
    from ragbench.experiment.worker import Failure, Job
    from ragbench.search.engine.executor import Outcome


class Workers(Protocol):
    """Numbered processes, each running one arm at a time. A future that raises means that its process has died."""

    count: int

    def submit(self, number: int, settings: Settings) -> Future[Outcome | Failure]:
        """Let a worker run an arm."""

    def restart(self, number: int) -> None:
        """Replace a worker that has died."""


Beside = Callable[
    [Callable[..., None], Sequence[tuple[Any, ...]], "ExecutionSpec"], AbstractContextManager[Callable[[], int]]
]
"""Calls a function once for each tuple of arguments; gives what waits for all calls and counts those that failed."""


def nothing_missing() -> None:
    """The check of an execution that works everywhere."""


@dataclass(frozen=True)
class Execution:
    """`workers` for a job, as a context; `check` raises ConfigError where it is not possible.

    `beside`: calls functions on other machines, None where only this machine is used.
    """

    workers: Callable[[Job, int, ExecutionSpec], AbstractContextManager[Workers]]
    check: Callable[[], None] = nothing_missing
    beside: Beside | None = None
