"""Works on a large collection in pieces, here or by other processes.

A shard is a folder that one task fills. It gets its name when it is complete, so the next build uses the finished
shards of a killed one. Results depend only on the tasks, not on the number of processes.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from pathlib import Path

from ragbench.base.bounds import Count, Validated
from ragbench.base.errors import IndexError_
from ragbench.base.files import draft_of, publish_folder
from ragbench.base.pools import Failure, LocalPool, Pool, run_captured

Task = Callable[[Path], None]

"""A task that fills an empty folder; it must be picklable."""

Tick = Callable[[int], None]

# Tasks sent ahead to each process: more would take memory, fewer would let processes wait.
_AHEAD = 2


@dataclass(frozen=True)
class Sharding(Validated):
    """How indexes are built: collections of more than `shard_documents` (at least 1) documents in shards of that size.

    `workers` (at least 1) processes share the shards; 1 is this process, whose models use all CPUs by themselves.
    Neither changes results.
    """

    shard_documents: Count = 2000  # documents per shard; an interrupted build continues after its last shard
    workers: Count = 1  # processes that build shards; 1: only this process

    @property
    def out_of_process(self) -> bool:
        """Whether other processes build the shards."""
        return self.workers > 1

    def pool(self) -> Pool:
        """Those processes."""
        return LocalPool(self.workers)

    def starts(self, n_documents: int) -> range:
        """The first document of every shard."""
        return range(0, n_documents, self.shard_documents)


@dataclass(frozen=True)
class Shards:
    """The shards of one artefact, below `folder`."""

    folder: Path
    sharding: Sharding

    def run(self, tasks: Iterable[tuple[int, Task]], tick: Tick) -> list[Path]:
        """Run the tasks whose shards are not finished yet; returns the folders of all shards in the order of the tasks.

        Each task comes with its size, which `tick` gets when it is done. A failure ends the run.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        places: list[Path] = []

        def unfinished() -> Iterator[tuple[int, Task, Path]]:
            for size, task in tasks:
                shard_folder = self.folder / f"{len(places):06}"
                places.append(shard_folder)
                if shard_folder.is_dir():
                    tick(size)
                else:
                    yield size, task, shard_folder

        if self.sharding.out_of_process:
            self._run_in_processes(unfinished(), tick)
        else:
            for size, task, shard_folder in unfinished():
                fill_shard(task, shard_folder)
                tick(size)
        return places

    def discard(self) -> None:
        """Delete the shards once their artefact is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run_in_processes(self, work: Iterable[tuple[int, Task, Path]], tick: Tick) -> None:
        pending: deque[tuple[int, Future[Failure | None]]] = deque()
        with self.sharding.pool() as pool:
            for number, (size, task, shard_folder) in enumerate(work):
                if len(pending) == _AHEAD * pool.count:
                    tick(_finish(*pending.popleft()))
                call = (run_captured, shard_folder.name, _fill_in_process, task, shard_folder)
                pending.append((size, pool.submit(number % pool.count, *call)))
            for size, future in pending:
                tick(_finish(size, future))


def _finish(size: int, future: Future[Failure | None]) -> int:
    """Wait for a task of another process, raise its error, and return its size."""
    try:
        failure = future.result()
    except BrokenExecutor as death:
        raise IndexError_(
            "a worker process died while it built a part of the index (out of memory?); run the command again "
            "(finished parts are kept), with fewer workers or a smaller index.build.shard_documents"
        ) from death
    if failure is None:
        return size
    if not failure.details:
        raise IndexError_(failure.reason)
    error = RuntimeError(failure.reason)
    error.add_note(failure.details)
    raise error


def _fill_in_process(task: Task, shard_folder: Path) -> None:
    """Fill a shard in another process, possibly on another machine."""
    if not shard_folder.parent.is_dir():
        raise IndexError_(
            f"a worker does not find {shard_folder.parent}: name a folder with paths.index that all machines share"
        )
    fill_shard(task, shard_folder)


def fill_shard(task: Task, shard_folder: Path) -> None:
    """Let a task fill a folder, which gets its name when it is complete."""
    draft = draft_of(shard_folder)
    draft.mkdir()
    task(draft)
    try:
        publish_folder(draft, shard_folder)
    except OSError:
        if not shard_folder.is_dir():
            raise
        shutil.rmtree(draft)  # a process of a killed command has finished the same part before


@dataclass(frozen=True)
class Building:
    """The place where a part is built: an empty `folder` to fill, and `shards` for a large collection."""

    folder: Path
    shards: Shards

    def in_shards(self, n_documents: int) -> bool:
        """Whether a collection of this size is built in shards."""
        return n_documents > self.shards.sharding.shard_documents
