"""The parts of an index: each has a name, is built when first needed and opened once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ragbench.index.shards import Shards, Tick

if TYPE_CHECKING:
    from ragbench.index.index import Index

Progress = Callable[[str, int, int], None]
"""Called with the name of a task, the number of items done, and the number of all items."""

T = TypeVar("T")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Building:
    """The place where a part is built: an empty `folder` to fill, and `shards` for a large collection."""

    folder: Path
    shards: Shards
    progress: Progress | None = None

    def in_shards(self, n_documents: int) -> bool:
        """Whether a collection of this size is built in shards."""
        return n_documents > self.shards.sharding.shard_documents

    def ticks(self, task: str, total: int) -> Tick:
        """A function to call with the number of items finished since the last call."""
        done = 0

        def tick(n: int) -> None:
            nonlocal done
            done += n
            if self.progress is not None:
                self.progress(task, done, total)

        tick(0)
        return tick

    def with_progress(self, task: str, items: Iterable[Item], total: int) -> Iterator[Item]:
        """The items; each is reported when the next one is requested."""
        tick = self.ticks(task, total)
        for item in items:
            yield item
            tick(1)


@dataclass(frozen=True)
class StoredPart(Generic[T]):
    """A part in an artefact's files. Stages read what `open` returns as `index.<name>`.

    `inputs` lists everything that the files depend on, with the version of the code: equal inputs give equal bytes.
    `build` fills an empty folder, `open` reads a finished one.
    """

    name: str
    inputs: Callable[[Index], list[Any]]
    build: Callable[[Building, Index], None]
    open: Callable[[Path, Index], T]


@dataclass(frozen=True)
class Part(Generic[T]):
    """A part that is made in memory from other parts; `fingerprint` is a digest of everything that it depends on."""

    name: str
    fingerprint: Callable[[Index], str]
    open: Callable[[Index], T]
