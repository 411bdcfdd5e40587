"""Where a part of an index is built, and which callback receives its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ragbench.index.shards import Shards, Tick

Progress = Callable[[str, int, int], None]
"""Called with the name of a task, the number of items done, and the number of all items."""

_Item = TypeVar("_Item")


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

    def with_progress(self, task: str, items: Iterable[_Item], total: int) -> Iterator[_Item]:
        """The items; each is reported when the next one is requested."""
        tick = self.ticks(task, total)
        for item in items:
            yield item
            tick(1)
