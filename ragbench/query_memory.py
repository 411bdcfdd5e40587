"""What is kept of the answers to earlier queries, all of it in one place, so that one call drops it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

Result = TypeVar("Result")


class QueryMemory:
    """Results that depend on the text of a query and outlive its answer.

    Code that keeps such results does it here, so that whoever times a query can drop them first: else the second ask of
    a query would be timed. Threads may share it.
    """

    def __init__(self) -> None:
        self._clear: list[Callable[[], None]] = []

    def keep(self, function: Callable[[str], Result], size: int) -> Callable[[str], Result]:
        """The function of a text with its `size` latest results kept; errors are not kept."""
        cached = lru_cache(size)(function)
        self._clear.append(cached.cache_clear)
        return cached

    def forget(self) -> None:
        """Drop everything."""
        for clear in self._clear:
            clear()
