"""Limits of a service and of one request."""

from __future__ import annotations

from dataclasses import dataclass

from ragbench.base.bounds import Count, Positive, Validated, Weight


@dataclass(frozen=True)
class Limits(Validated):
    """Limits of a service, all except `drain` above 0.

    `max_body`: bytes of a request. `max_query`: characters of a query, and of a hypothesis. `max_top`: hits of one
    answer. `time_limit`: seconds from the arrival of a request to its answer, including the queue. `workers`: threads
    that search; Java and the models gain little from more than one. `queue`: requests that may wait for a worker; the
    next one is refused. `per_client`: searches of one caller (a token, or an address without tokens) at the same time,
    so that one caller cannot fill the queue. `drain`: seconds for
    which a service that is shutting down still takes requests while it reports that it is not ready, so that proxies
    stop sending them."""

    max_body: Count = 65_536
    max_query: Count = 2_000
    max_top: Count = 100
    time_limit: Positive = 10.0
    workers: Count = 1
    queue: Count = 64
    per_client: Count = 32
    drain: Weight = 0.0
