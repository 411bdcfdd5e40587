"""Ask a live search: at a limited rate, and a limited number of times more when it fails."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ragbench.base.errors import LiveError


class RequestFailed(Exception):
    """A failed attempt. `again`: whether another one may help; `after_s`: the seconds to wait, as the search says."""

    def __init__(self, reason: str, again: bool = True, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.again, self.after_s = again, after_s


@dataclass
class RateLimitedClient:
    """Asks one search: never more than `per_second` times a second, up to `retries` times more when it fails.

    `ask` makes one attempt and raises RequestFailed when it fails; `name` is what messages call the search.
    """

    name: str
    ask: Callable[[str, int], Any]
    per_second: float
    retries: int
    _free_at: float = field(default=0.0, repr=False)

    def wait(self) -> None:
        """Wait until the next request may be sent."""
        time.sleep(max(0.0, self._free_at - time.monotonic()))

    def __call__(self, query: str, depth: int) -> Any:
        """The answer. LiveError when there is none after all attempts."""
        for attempt in range(1, self.retries + 2):
            self.wait()
            self._free_at = time.monotonic() + 1 / self.per_second
            try:
                return self.ask(query, depth)
            except RequestFailed as failure:
                if attempt > self.retries or not failure.again:
                    times = "once" if attempt == 1 else f"{attempt} times"
                    raise LiveError(f"{self.name} did not answer '{query[:60]}', asked {times}: {failure}") from None
                pause = min(_MOST_PAUSE_S, max(failure.after_s, 0.2 * 2 ** (attempt - 1)))
                self._free_at = max(self._free_at, time.monotonic() + pause)
        raise AssertionError("unreachable")


_MOST_PAUSE_S = 30.0
"""The longest wait before another attempt, even if the search asks for more."""


def secret(variable: str | None, name: str) -> str | None:
    """The value of the environment variable that holds a token. LiveError when it is not set."""
    if variable is None:
        return None
    value = os.environ.get(variable, "")
    if not value:
        raise LiveError(f"{name} needs a token: set the environment variable {variable}")
    return value
