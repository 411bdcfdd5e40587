"""Which share of the relevant items is judged, estimated from the items that several systems found.

Systems are treated as independent samples: the number of items that only one system found tells how many all of them
missed. Chao's lower bound (A. Chao, Biometrics 43, 1987), bias-corrected, from the numbers of items found by one and by
two of t systems:

    relevant >= found + (t - 1) / t * once (once - 1) / (2 (twice + 1))

and Chapman's form of Lincoln and Petersen for the two systems that overlap least (Chapman, Univ. of California
Publications in Statistics 1, 1951). Systems that are alike find the same items, which makes both estimates too small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.errors import BenchmarkError
from ragbench.benchmark.benchmark import Qrels
from ragbench.benchmark.runs import Run
from ragbench.evidence.max_t import resamples

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """An estimate of how many relevant items there are, and of the share that is judged (at most 1).

    The interval of the share is a bootstrap over topics.
    """

    method: str
    systems: tuple[str, ...]
    relevant: float
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Completeness:
    """`known` items are judged relevant; systems retrieved `found` of them, `once` in one system, `twice` in two.

    The names are those of `data judged --json`.
    """

    depth: int
    topics: int
    known: int
    found: int
    once: int
    twice: int
    estimates: tuple[Estimate, ...]

    def sentences(self) -> list[str]:
        """The estimates in words."""
        lines = [
            f"{self.known} sections or documents are judged relevant; the first {self.depth} results of "
            f"{len(self.estimates[0].systems)} systems contain {self.found} of them, {self.once} in one system "
            "only"
        ]
        for row in self.estimates:
            of = f" ({' and '.join(row.systems)})" if len(row.systems) == 2 else ""
            share = (
                f"at most {row.share:.1%} [{row.low:.1%}, {row.high:.1%}] of them are judged"
                if row.low < 1
                else "more are already judged, so none seem to be missing"
            )
            lines.append(
                f"{row.method}{of}: systems like these would return about {row.relevant:.0f} relevant ones; {share}"
            )
        return lines


def completeness(
    runs: Mapping[str, Run], qrels: Qrels, depth: int = 10, *, seed: int = 13, draws: int = 2000
) -> Completeness:
    """Estimate from the first `depth` of at least two runs. BenchmarkError for fewer, and where nothing is relevant."""
    if len(runs) < 2:
        raise BenchmarkError("one system cannot show what it missed: name runs or arms of at least two")
    names = sorted(runs)
    relevant = {qid: {i for i, grade in grades.items() if grade > 0} for qid, grades in sorted(qrels.items())}
    relevant = {qid: items for qid, items in relevant.items() if items and any(qid in runs[name] for name in names)}
    if not relevant:
        raise BenchmarkError("nothing is judged relevant to the topics of these runs: judge some hits first")
    hits = {
        qid: [items & {item for item, _ in runs[name].get(qid, ())[:depth]} for name in names]
        for qid, items in relevant.items()
    }
    pair = min(combinations(range(len(names)), 2), key=lambda two: (_overlap(hits, two), two))
    counts = np.array([_counts(relevant[qid], lists, pair) for qid, lists in hits.items()], dtype=np.float64)
    samples = np.hstack([counts.T @ drawn for drawn in resamples(len(counts), counts.shape[1], draws, seed)])
    totals = counts.sum(axis=0)
    methods: list[tuple[str, tuple[str, ...], Any]] = [
        ("Chao", tuple(names), lambda sums: _chao(sums, len(names))),
        ("Lincoln-Petersen", (names[pair[0]], names[pair[1]]), _chapman),
    ]
    known, judged_found, once, twice = (int(value) for value in totals[:4])
    estimates = []
    for method, systems, estimate in methods:
        shares = np.minimum(1.0, samples[0] / np.maximum(estimate(samples), 1.0))
        low, high = np.quantile(shares, (0.025, 0.975))
        at_least_one = max(float(estimate(totals)), 1.0)
        estimates.append(
            Estimate(method, systems, at_least_one, min(1.0, known / at_least_one), float(low), float(high))
        )
    return Completeness(depth, len(counts), known, judged_found, once, twice, tuple(estimates))


def _overlap(hits: Mapping[str, list[set[str]]], pair: tuple[int, int]) -> float:
    both = sum(len(items_of[pair[0]] & items_of[pair[1]]) for items_of in hits.values())
    return both / max(1, sum(len(items_of[pair[0]] | items_of[pair[1]]) for items_of in hits.values()))


def _counts(relevant: set[str], lists: list[set[str]], pair: tuple[int, int]) -> tuple[int, ...]:
    """The counts of a topic: relevant, found, found once, found twice; found by each of the pair, and by both."""
    times = [sum(item in items for items in lists) for item in relevant]
    one, second = lists[pair[0]], lists[pair[1]]
    return (
        *(len(relevant), sum(n > 0 for n in times), times.count(1), times.count(2)),
        *(len(one), len(second), len(one & second)),
    )


def _chao(sums: Floats, systems: int) -> Any:
    once, twice = sums[2], sums[3]
    return sums[1] + (systems - 1) / systems * once * (once - 1) / (2 * (twice + 1))


def _chapman(sums: Floats) -> Any:
    return (sums[4] + 1) * (sums[5] + 1) / (sums[6] + 1) - 1
