"""What one request may cost."""

from __future__ import annotations

from dataclasses import dataclass

from ragbench.bounds import Checked, Count, Positive, Weight


@dataclass(frozen=True)
class Limits(Checked):
    """Bounds of a service, all but `drain` above 0.

    `max_body`: bytes of a request. `max_query`: characters of a query, and of a hypothesis. `max_top`: hits of one
    answer. `time_limit`: seconds from the arrival of a request to its answer, time in the queue included. `head_limit`:
    seconds in which the head of a request must arrive, and before it the handshake of TLS be done. `workers`: threads
    that search; Java and the models gain little from more than one. `queue`: requests that may wait for a worker; the
    next one is sent away. `per_client`: searches of one caller (a token, or an address where none are asked for) at
    once, so that one cannot fill the queue. `drain`: seconds in which a service that was told to end takes requests all
    the same, while it says that it is not ready, so that others stop to send them.
    """

    max_body: Count = 65_536
    max_query: Count = 2_000
    max_top: Count = 100
    time_limit: Positive = 10.0
    head_limit: Positive = 5.0
    workers: Count = 1
    queue: Count = 64
    per_client: Count = 32
    drain: Weight = 0.0
