"""What a change adds to the p95 of a query, and whether that is within its budget.

On a quiet machine the wall clock decides. On a busy one the time that a query waited for a CPU, which Linux
counts for every thread, is subtracted from its time: what remains is its computing, and its waiting for anything else.
Without that count, and for a live search, the interval is widened by what the disturbance may have moved. The cost is
open only if the interval then contains the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ragbench.base import minimums
from ragbench.evaluation.intervals import Samples, weighted_sum
from ragbench.evaluation.machine import WAITED
from ragbench.evidence.statistics import Contrast

if TYPE_CHECKING:
    import pandas as pd

_Axis = Literal["within", "over", "open", "off"]


@dataclass(frozen=True)
class _Added:
    """Milliseconds added to p95 (negative: saved) with their interval, infinite where the queries are too few."""

    p95_ms: float
    low_ms: float
    high_ms: float

    @property
    def text(self) -> str:
        """As text: `+12 ms [+9, +16]`."""
        interval = f"[{self.low_ms:+.0f}, {self.high_ms:+.0f}]"
        unknown = f"(no CI: fewer than {minimums.FOR_P95_CI} queries)"
        return f"{self.p95_ms:+.0f} ms {interval if self.has_interval else unknown}"

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return bool(np.isfinite(self.high_ms))


@dataclass(frozen=True)
class Cost:
    """The cost axis of a verdict. `budget_ms` is None without a limit, `added` None where nothing can be said.

    `unknown` says why not; `disturbed` how the machine was disturbed, which has widened the interval by `noise_ms` on
    either side. `net`: time spent waiting for a CPU is subtracted. `queries` is the number that was timed. `wanted` is
    False where latency was turned off or does not apply.
    """

    added: _Added | None
    budget_ms: float | None
    unknown: str = "latency was not measured"
    disturbed: str = ""
    noise_ms: float = 0.0
    queries: int = 0
    net: bool = False
    wanted: bool = True

    @property
    def axis(self) -> _Axis:
        """Within, over, open (not known, or the interval contains the budget), or off: quality alone decides."""
        if self.budget_ms is None or not self.wanted:
            return "off"
        if self.added is None or not self.added.has_interval:
            return "open"
        if self.added.low_ms > self.budget_ms:
            return "over"
        return "within" if self.added.high_ms <= self.budget_ms else "open"

    @property
    def text(self) -> str:
        """The axis with its reason: `p95 +12 ms [+9, +16], within the budget of +50 ms`."""
        time = self.unknown if self.added is None else f"p95 {self.added.text}{self._noise}"
        if self.budget_ms is None:
            return f"{time}, no budget is set"
        if not self.wanted:
            return time
        if self.added is None:
            return f"{time}, the budget is +{self.budget_ms:g} ms"
        relation = {"within": "within", "over": "over", "open": "possibly over"}[self.axis]
        return f"{time}, {relation} the budget of +{self.budget_ms:g} ms"

    @property
    def remedy(self) -> str:
        """What settles an open cost."""
        if self.unknown == END_TO_END:
            return "Compare like with like: serve a bundle (ragbench serve) and measure it with live=ragbench"
        if self.unknown == RECORDED:
            return "To include latency, measure the search instead of its run file: docs/measure-existing-search.md"
        if self.unknown == TURNED_OFF:
            return "To include latency: ragbench run --remeasure-latency @1"
        if self.disturbed:
            return "Measure latency again on a quieter machine: ragbench run --remeasure-latency @1"
        if self.added is not None and self.added.has_interval:
            return f"Time more queries: latency.queries={2 * max(self.queries, minimums.FOR_P95_CI)}"
        if 0 < self.queries < minimums.FOR_P95_CI:
            return (
                f"A confidence interval of p95 needs at least {minimums.FOR_P95_CI} timed queries: set latency.queries="
                f"{minimums.FOR_P95_CI} and provide a query log or more queries"
            )
        return "Measure latency: ragbench run --remeasure-latency @1"

    @property
    def _noise(self) -> str:
        if self.net:
            return f" ({NET}, {self.noise_ms:.0f} ms allowed for noise: {self.disturbed})"
        return f" (with {self.noise_ms:.0f} ms allowed for noise: {self.disturbed})" if self.disturbed else ""


NET = "time waiting for a CPU subtracted"
"""How a cost says that it is of net times."""
END_TO_END = "a live search is timed end to end including its network, a pipeline is not"
"""Why the times of a live search and of a pipeline are not compared."""
RECORDED = "a run file has no latencies"
"""Why nothing is known of the cost of an arm that was recorded."""
TURNED_OFF = "latency was turned off (latency.enabled=false)"
"""Why nothing is known of the cost of arms that were measured for their quality only."""


@dataclass(frozen=True)
class Times:
    """The timed queries of an arm, (qid, total, waited) in milliseconds, and the machine that they were timed on.

    `waited` is the part of `total` spent waiting for a CPU; older results lack it. `machine` identifies the
    machine: times of different ones are not compared. `disturbed` says how others disturbed it, "" when they did not;
    `lost` is the share of the time that they took, `stolen` the part of it that the host of a virtual machine took.
    `elsewhere`: those of a live search, end to end.
    """

    samples: pd.DataFrame
    machine: str = ""
    disturbed: str = ""
    lost: float = 0.0
    stolen: float = 0.0
    elsewhere: bool = False

    @property
    def net(self) -> Times | None:
        """The times without waiting for a CPU, of which the host alone took a share; None if not observed."""
        if self.elsewhere or WAITED not in self.samples:
            return None
        samples = self.samples.assign(total=self.samples["total"] - self.samples[WAITED])
        return replace(self, samples=samples, lost=self.stolen)


def cost(contrast: Contrast, times: Mapping[str, Times], budget_ms: float | None, seed: int) -> Cost:
    """What a contrast adds to p95, against a budget; `times` are those of the arms that were timed."""
    weights = {arm: weight for arm, weight in contrast.weights.items() if weight}
    if not weights or any(arm not in times for arm in weights):
        return Cost(None, budget_ms)
    used = [times[arm] for arm in weights]
    machines = list(dict.fromkeys(times_of_arm.machine for times_of_arm in used))
    if len(machines) > 1:
        return Cost(None, budget_ms, f"the times are of different machines ({'; '.join(machines)}) and not compared")
    disturbed = next((times_of_arm.disturbed for times_of_arm in used if times_of_arm.disturbed), "")
    net = {arm: times[arm].net for arm in weights} if disturbed else {}
    is_net = bool(net) and None not in net.values() and any(times[arm].samples[WAITED].any() for arm in weights)
    if is_net:
        times = {arm: ms for arm, ms in net.items() if ms is not None}
    queries = len(set.intersection(*(set(times_of_arm.samples["qid"]) for times_of_arm in used)))
    if not queries:
        return Cost(None, budget_ms, "the arms were timed on different queries")
    interval = _added_p95(weights, {arm: times[arm].samples for arm in weights}, seed)
    if not interval.has_interval:
        return Cost(interval, budget_ms, queries=queries)
    noise = noise_ms(weights, times) if disturbed else 0.0
    wider = _Added(interval.p95_ms, round(interval.low_ms - noise, 6), round(interval.high_ms + noise, 6))
    return Cost(wider, budget_ms, disturbed=disturbed, noise_ms=noise, queries=queries, net=is_net)


def noise_ms(weights: Mapping[str, float], times: Mapping[str, Times]) -> float:
    """How far a disturbed machine may have moved an added p95, in milliseconds.

    Half the range of the difference over the rounds, in each of which all arms were timed side by side, and of every
    arm the share of its p95 that others took.
    """
    by_round = {arm: _p95_by_round(times[arm].samples) for arm in weights}
    rounds = min(map(len, by_round.values()))
    added = [sum(weight * by_round[arm][number] for arm, weight in weights.items()) for number in range(rounds)]
    spread = (max(added) - min(added)) / 2 if added else 0.0
    lost_ms = sum(
        abs(weight) * times[arm].lost * max(by_round[arm]) for arm, weight in weights.items() if by_round[arm]
    )
    return round(float(spread + lost_ms), 6)


def _p95_by_round(samples: pd.DataFrame) -> list[float]:
    rounds = samples.groupby("qid").cumcount()
    return [float(np.percentile(column, 95)) for _, column in samples["total"].groupby(rounds.to_numpy())]


def _added_p95(weights: Mapping[str, float], times: Mapping[str, pd.DataFrame], seed: int) -> _Added:
    """The difference in p95 with its 95% interval (`ragbench.evaluation.intervals`) over the queries that arms share.

    `times` has the samples of every arm: qid and total, in milliseconds.
    """
    samples = {arm: Samples(of["qid"].tolist(), of["total"].to_numpy(dtype=np.float64)) for arm, of in times.items()}
    change = weighted_sum([(samples[arm], weight) for arm, weight in weights.items()], seed)
    if np.isnan(change["p95_high"]):
        return _Added(round(change["p95"], 6), -np.inf, np.inf)
    return _Added(*(round(change[name], 6) for name in ("p95", "p95_low", "p95_high")))
