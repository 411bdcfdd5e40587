"""Where calls run in addition to this process: what an entry point of the group `ragbench.executions` names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragbench.base import plugins
from ragbench.base.pools import Begin, Pool
from ragbench.config.sections import LOCAL, ExecutionSpec
from ragbench.index.shards import Sharding
from ragbench.models.parallel import threads_for

if TYPE_CHECKING:
    from ragbench.config.settings import Settings


@dataclass(frozen=True)
class Execution:
    """`pool` of at most so many processes, which begin with a call."""

    pool: Callable[[int, Begin, ExecutionSpec], Pool]


def execution_of(spec: ExecutionSpec) -> Execution:
    """The part that calls functions elsewhere. ConfigError for an unknown kind."""
    execution: Execution = plugins.load("ragbench.executions", spec.kind, "execution.kind")
    return execution


@dataclass(frozen=True)
class _DistributedBuild(Sharding):
    """Shards that are built where an execution runs, by its workers."""

    execution: ExecutionSpec = field(default_factory=ExecutionSpec)

    @property
    def out_of_process(self) -> bool:
        """Always in other processes."""
        return True

    def pool(self) -> Pool:
        """The processes of the execution."""
        return execution_of(self.execution).pool(self.workers, (), self.execution)


def sharding_of(settings: Settings) -> Sharding:
    """How the settings have a large index built, and where."""
    spec, sharding = settings.execution, settings.sharding
    if spec.kind == LOCAL:
        return sharding
    return _DistributedBuild(sharding.shard_documents, spec.workers or threads_for(None), spec)
