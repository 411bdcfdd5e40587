"""A worker process: it keeps models, the Java machine and intermediate results, and runs one arm at a time.

A worker gets plain values (`Job` once, a name and a configuration for every arm) and returns an `Outcome`, which the
driver writes.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragbench.base.errors import BenchmarkError
from ragbench.base.pools import Failure, run_captured

if TYPE_CHECKING:
    from ragbench.base.types import Document, Query
    from ragbench.experiment.plan import Plan
    from ragbench.index.index import Index
    from ragbench.index.spec import IndexSpec
    from ragbench.search.engine.executor import Outcome


@dataclass(frozen=True)
class Job:
    """What all arms of an experiment share.

    `data` describes the benchmark to `ragbench.config.benchmark`, None when it was built in memory: then `documents`
    holds its documents. `collection` is the digest they must have.
    """

    config: Mapping[str, Any]
    queries: Sequence[Query]
    collection: str
    data: Mapping[str, Any] | None
    documents: Sequence[Document]
    threads: int
    memory_bytes: int

    @staticmethod
    def of(plan: Plan, threads: int) -> Job:
        """The job of running the queries of a plan; the configuration of its first arm names the folders."""
        benchmark = plan.benchmark
        return Job(
            next(iter(plan.arms.values())).config,
            plan.queries,
            benchmark.collection,
            benchmark.documents_source,
            tuple(benchmark.documents) if benchmark.documents_source is None else (),
            threads,
            plan.execution.memory_mb << 20,
        )


@dataclass
class _Worker:
    """One process's models, indexes and intermediate results, made when first needed and kept."""

    job: Job
    _indexes: dict[IndexSpec, Index] = field(default_factory=dict, repr=False)
    _opened: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # Has an effect where numpy is not loaded yet; the driver's command line sets it, too.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from threadpoolctl import threadpool_limits

        from ragbench.config.settings import Settings
        from ragbench.index.artefacts import ArtefactStore
        from ragbench.search.engine.executor import Session

        threadpool_limits(limits=1, user_api="blas")
        shared = Settings("worker", self.job.config)
        self._store = ArtefactStore(shared.index_folder)
        self._models = shared.models(self.job.threads)
        self._session = Session(self.job.queries, self.job.memory_bytes)

    def outcome(self, name: str, config: Mapping[str, Any]) -> Outcome:
        """Run one arm."""
        from ragbench.config.settings import Settings
        from ragbench.index.index import Index
        from ragbench.search.engine.executor import Arm

        settings = Settings(name, config)
        if settings.index not in self._indexes:
            self._indexes[settings.index] = Index(
                settings.index, self.job.collection, self._documents, self._store, self._models, opened=self._opened
            )
        return self._session.outcome(Arm(name, settings.pipeline, self._indexes[settings.index]))

    def _documents(self) -> Sequence[Document]:
        """The collection, read only when an artefact must be built."""
        if self.job.data is None:
            return self.job.documents
        if not hasattr(self, "_benchmark"):
            from ragbench.config.benchmark import load

            self._benchmark = load(self.job.data)
            if self._benchmark.collection != self.job.collection:
                raise BenchmarkError(
                    f"a worker reads other documents from data={dict(self.job.data)} than the driver did: "
                    "give every machine the same files and the same version of ragbench"
                )
        return self._benchmark.documents


_worker: _Worker | None = None
_job: Job | None = None


def begin(job: Job) -> None:
    """Set the job of this process; `run` starts the work."""
    global _job, _worker
    _job, _worker = job, None


def run(name: str, config: Mapping[str, Any]) -> Outcome | Failure:
    """Run an arm of the job in this process; the first arm starts the worker.

    Errors are returned as a `Failure`; only a process that dies raises in the driver.
    """
    global _worker
    if _worker is None:
        assert _job is not None, "call begin() first"
        _worker = _Worker(_job)
    return run_captured(name, _worker.outcome, name, config)
