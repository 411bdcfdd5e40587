"""Open loop: queries arrive independently of answers, and one worker answers them in order.

Arrivals are a Poisson process, seeded, the same for every arm. The response time of a query runs from its arrival to
its answer: waiting in the queue, then service. A closed loop, where the next query comes when the last is answered,
hides the waiting.

Saturation: an arm keeps up with a rate when its load there, rate times mean service time as measured at that rate, is
below 1; otherwise the queue grows for as long as queries come (Loynes 1962). The saturation point is the largest of
the given rates, in ascending order, before the first that it does not keep up with.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragbench.base import query_cache
from ragbench.base.columns import Column, Columns
from ragbench.base.progress import task_ticks, ticks
from ragbench.base.types import Query
from ragbench.evaluation.intervals import Floats, Samples, summary
from ragbench.evaluation.latency import LatencySpec, QueryMutator, Timing, without_caches
from ragbench.search.engine.executor import Arm

_MS = {name: Column(name, form=".1f") for name in ("p50", "p95", "p99", "service", "waiting_p95", "expected_p95")}
COLUMNS = Columns.of(
    *(Column("arm", text=True), Column("qps", form="g"), "queries", Column("load", form=".2f"), "keeps_up"),
    *(_MS["p50"], "p50_low", "p50_high", _MS["p95"], "p95_low", "p95_high", _MS["p99"], "mean"),
    *(_MS["service"], _MS["waiting_p95"], "queue_at_end", _MS["expected_p95"]),
)
SHOWN = ("arm", "qps", "load", "keeps_up", *_MS, "queue_at_end")
"""The columns to read first."""


@dataclass(frozen=True)
class Served:
    """Queries one arm answered at one rate: milliseconds since the start, of shape (n,), in order of arrival."""

    arm: str
    qps: float
    arrived: Floats
    begun: Floats
    answered: Floats

    @property
    def response_ms(self) -> Floats:
        """From arrival to answer."""
        return self.answered - self.arrived

    @property
    def load(self) -> float:
        """Rate times mean service time: the share of time that the worker needs."""
        return self.qps * float((self.answered - self.begun).mean()) / 1e3

    @property
    def keeps_up(self) -> bool:
        """Whether the queue stays finite at this rate."""
        return self.load < 1

    @property
    def queue_at_end(self) -> int:
        """How many queries were unanswered when the last one arrived, including it."""
        return int((self.answered > self.arrived[-1]).sum())


def measure(
    arms: Sequence[Arm],
    queries: Sequence[Query],
    spec: LatencySpec,
) -> list[Served]:
    """Send `spec.arrivals` queries at every rate of `spec.rates` to every arm in turn; arms in a new order per rate."""
    from threadpoolctl import threadpool_limits

    chance, unasked = random.Random(spec.seed), QueryMutator(queries)
    served: list[Served] = []
    tick = task_ticks("serving arrivals", len(spec.rates) * len(arms))
    with threadpool_limits(limits=spec.threads):
        fresh = without_caches(arms, queries[: spec.warmup], spec.threads)
        for qps in spec.rates:
            arrivals = poisson_ms(qps, spec.arrivals, spec.seed)
            sampled = chance.choices(queries, k=spec.arrivals)
            for arm in chance.sample(fresh, len(fresh)):
                served.append(_serve(arm, qps, [unasked.of(query) for query in sampled], arrivals))
                tick(1)
    return served


def poisson_ms(qps: float, n: int, seed: int) -> Floats:
    """`n` arrivals of a Poisson process within `n / qps` seconds, in milliseconds, in order.

    For a given number, arrivals of a Poisson process are uniform, so the rate is exactly `qps` for any `n`.
    """
    return np.sort(np.random.default_rng(seed).uniform(0.0, 1e3 * n / qps, n))


def _serve(arm: Arm, qps: float, queries: Sequence[Query], arrivals_ms: Floats) -> Served:
    """Answer each query as soon as it has arrived and the one before it is answered."""
    begun, answered = np.empty(len(queries)), np.empty(len(queries))
    tick = ticks("queries", len(queries))
    start = time.perf_counter()
    for i, (query, arrival) in enumerate(zip(queries, arrivals_ms.tolist(), strict=True)):
        arm.index.memory.forget()
        query_cache.OF_PLUGINS.forget()
        early = arrival / 1e3 - (time.perf_counter() - start)
        if early > 0:
            time.sleep(early)
        begun[i] = (time.perf_counter() - start) * 1e3
        arm.pipeline([query], arm.index)
        answered[i] = (time.perf_counter() - start) * 1e3
        tick(1)
    return Served(arm.name, qps, arrivals_ms, begun, answered)


def simulate(arrivals_ms: Floats, service_ms: Floats) -> Floats:
    """Response times of a queue with one worker: wait = max(0, wait before + service before - gap), Lindley 1952."""
    responses = np.empty(len(arrivals_ms))
    free = 0.0
    for i, (arrival, service) in enumerate(zip(arrivals_ms.tolist(), service_ms.tolist(), strict=True)):
        free = max(free, arrival) + service
        responses[i] = free - arrival
    return responses


def table(served: Iterable[Served], timings: Mapping[str, Timing], seed: int) -> pd.DataFrame:
    """One row for every arm and rate with the columns `COLUMNS`, times in milliseconds.

    p50 to mean are response times, with intervals for independent arrivals; `service` is the mean service time,
    `waiting_p95` that of the wait alone. `expected_p95` is the p95 of the same arrivals in a simulated queue with
    service times drawn from those of the closed loop (`timings`): a difference means that service times change under
    load.
    """

    rows = []
    for outcome in served:
        responses = Samples([str(i) for i in range(len(outcome.arrived))], outcome.response_ms)
        drawn = np.random.default_rng(seed).choice(timings[outcome.arm].samples().ms, len(outcome.arrived))
        rows.append(
            {
                "arm": outcome.arm,
                "qps": outcome.qps,
                "queries": len(outcome.arrived),
                "load": outcome.load,
                "keeps_up": outcome.keeps_up,
                **summary(responses, seed),
                "service": float((outcome.answered - outcome.begun).mean()),
                "waiting_p95": float(np.percentile(outcome.begun - outcome.arrived, 95)),
                "queue_at_end": outcome.queue_at_end,
                "expected_p95": float(np.percentile(simulate(outcome.arrived, drawn), 95)),
            }
        )
    order = {arm: i for i, arm in enumerate(timings)}
    frame = COLUMNS.frame(rows)
    return frame.sort_values(["arm", "qps"], key=lambda c: c.map(order) if c.name == "arm" else c, ignore_index=True)


def saturation(frame: pd.DataFrame) -> dict[str, float]:
    """The largest rate of every arm such that it keeps up with this and all lower given rates; 0 for none."""
    rates = {}
    for arm, rows in frame.sort_values("qps").groupby("arm", sort=False):
        steady = rows["keeps_up"].astype(bool).cummin()
        rates[str(arm)] = float(rows["qps"][steady].max()) if steady.any() else 0.0
    return rates


def sentences(frame: pd.DataFrame) -> list[str]:
    """The saturation point of every arm in words."""
    lines = []
    for arm, qps in saturation(frame).items():
        rates = frame[frame["arm"] == arm]["qps"]
        if qps == 0:
            lines.append(f"{arm}: the queue grows already at {rates.min():g} queries a second")
        elif qps == rates.max():
            lines.append(f"{arm}: keeps up with every rate, the largest {qps:g} queries a second")
        else:
            above = rates[rates > qps].min()
            lines.append(f"{arm}: saturates above {qps:g} queries a second; at {above:g} the queue grows")
    return lines
