"""Worker processes on this machine, started by loky: never forked, as Java may run in this process.

Each worker is an executor of one process, so that arms reuse the work of their neighbours, and a process that dies
fails only the arm it was running.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self

from ragbench.experiment import worker
from ragbench.experiment.executions import Execution

if TYPE_CHECKING:
    from ragbench.config.settings import Settings
    from ragbench.experiment.worker import Failure, Job
    from ragbench.search.engine.executor import Outcome


class JoblibWorkers:
    """`count` processes for a job, as a context: they end with it."""

    def __init__(self, job: Job, count: int) -> None:
        self.count = count
        self._job = job
        self._executors: list[Any] = []

    def __enter__(self) -> Self:
        self._executors = [self._executor() for _ in range(self.count)]
        return self

    def __exit__(self, *exception: object) -> None:
        for each in self._executors:
            each.shutdown(wait=True, kill_workers=True)

    def submit(self, number: int, settings: Settings) -> Future[Outcome | Failure]:
        """Let a worker run an arm."""
        future: Future[Outcome | Failure] = self._executors[number].submit(worker.run, settings)
        return future

    def restart(self, number: int) -> None:
        """Replace a worker that has died."""
        self._executors[number].shutdown(wait=True, kill_workers=True)
        self._executors[number] = self._executor()

    def _executor(self) -> Any:
        from joblib.externals.loky import ProcessPoolExecutor

        return ProcessPoolExecutor(
            max_workers=1,
            initializer=worker.begin,
            initargs=(self._job, os.getpid()),
            env={"OPENBLAS_NUM_THREADS": "1"},
        )


EXECUTION = Execution(lambda job, count, spec: JoblibWorkers(job, count))
