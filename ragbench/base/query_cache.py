"""Results kept from earlier queries, all in one place, so that one call drops them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

Result = TypeVar("Result")


class QueryCache:
    """Results that depend on the text of a query and outlive its answer.

    Code that keeps such results does it here, so that code that times a query can drop them first; else it would time
    the second ask of the query. Threads may share it.
    """

    def __init__(self) -> None:
        self._clear: list[Callable[[], None]] = []

    def keep(self, function: Callable[[str], Result], size: int) -> Callable[[str], Result]:
        """Wrap a function of a text so that its `size` latest results are kept; errors are not kept."""
        cached = lru_cache(size)(function)
        self._clear.append(cached.cache_clear)
        return cached

    def forget(self) -> None:
        """Drop everything."""
        for clear in self._clear:
            clear()


OF_PLUGINS = QueryCache()
"""What plug-ins keep of earlier queries."""


def remember(size: int = 1000) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Decorate a function of a text so that its `size` latest results are kept, for plug-ins.

    A plug-in with a cache of its own is timed with novel queries, and the run reports that it caches; with this
    decorator the latency of a repeated query is measured, too.

        @ragbench.remember(500)
        def synonyms(text): ...
    """
    return lambda function: OF_PLUGINS.keep(function, size)
