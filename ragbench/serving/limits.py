"""What one request may cost."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ragbench.errors import ConfigError


@dataclass(frozen=True)
class Limits:
    """Bounds of a service, all of them above 0.

    `max_body`: bytes of a request. `max_query`: characters of a query, and of a hypothesis. `max_top`: hits of one
    answer. `time_limit`: seconds from the arrival of a request to its answer, time in the queue included. `head_limit`:
    seconds in which the head of a request must arrive. `workers`: threads that search; Java and the models gain little
    from more than one. `queue`: requests that may wait for a worker; the next one is sent away. `per_client`: searches
    of one address at once, so that one client cannot fill the queue.
    """

    max_body: int = 65_536
    max_query: int = 2_000
    max_top: int = 100
    time_limit: float = 10.0
    head_limit: float = 5.0
    workers: int = 1
    queue: int = 64
    per_client: int = 32

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < float("inf"):
                raise ConfigError(f"{field.name} must be above 0 and finite, got {value:g}")
