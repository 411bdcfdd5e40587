"""Speed: how long one query takes, one at a time, with nothing remembered.

Protocol: warm up, then rounds; in every round every arm answers every sampled query once, arms in a new seeded order
for each query, so that a slow moment of the machine falls on all arms alike. Models run without caches and with pinned
threads. The time is service time in a closed loop: the next query starts when the last one is answered. Starting cold
is measured apart, in a fresh process (`ragbench.timing.coldstart`).
"""

from __future__ import annotations

import gc
import itertools
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.configuration import LatencySpec
from ragbench.engine.executor import Arm
from ragbench.engine.pipeline import start

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.types import Query

TOTAL = "total"


@dataclass(frozen=True)
class Timing:
    """Samples of one arm: milliseconds of shape (samples, stages + 1), the last column being the whole query."""

    arm: str
    columns: tuple[str, ...]
    qids: tuple[str, ...]
    samples_ms: NDArray[np.float64]

    def frame(self) -> pd.DataFrame:
        """One row for every sample: arm, qid, then a column for every stage and `total`."""
        import pandas as pd

        frame = pd.DataFrame(self.samples_ms, columns=list(self.columns))
        frame.insert(0, "qid", self.qids)
        frame.insert(0, "arm", self.arm)
        return frame


def measure(
    arms: Sequence[Arm],
    queries: Sequence[Query],
    spec: LatencySpec,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Timing]:
    """Time every arm over a seeded sample of the queries."""
    chance = random.Random(spec.seed)
    sample = list(queries) if len(queries) <= spec.queries else chance.sample(list(queries), spec.queries)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=spec.threads):
        fresh = without_caches(arms, sample[: spec.warmup], spec.threads)
        rows: dict[str, list[list[float]]] = {arm.name: [] for arm in fresh}
        qids: list[str] = []
        total = spec.rounds * len(sample)
        gc.collect()
        gc.disable()
        try:
            for done in range(total):
                query = sample[done % len(sample)]
                qids.append(query.qid)
                for arm in chance.sample(fresh, len(fresh)):
                    rows[arm.name].append(time_query(arm, query))
                if done % len(sample) == len(sample) - 1:
                    gc.collect()
                if progress is not None:
                    progress("timing queries", done + 1, total)
        finally:
            gc.enable()
    return {
        arm.name: Timing(
            arm.name,
            (*(name for name, _ in arm.pipeline), TOTAL),
            tuple(qids),
            np.asarray(rows[arm.name], dtype=np.float64),
        )
        for arm in fresh
    }


def without_caches(arms: Sequence[Arm], warmup: Sequence[Query], threads: int) -> list[Arm]:
    """The arms with models that remember nothing, warmed up with some queries."""
    models = arms[0].index.models.uncached(threads)
    fresh = [Arm(arm.name, arm.pipeline, arm.index.with_models(models)) for arm in arms]
    for arm in fresh:
        arm.index.prepare(arm.pipeline.needs)
        for query in warmup:
            arm.pipeline([query], arm.index)
    return fresh


def time_query(arm: Arm, query: Query) -> list[float]:
    """Milliseconds of every stage and of the whole for one query."""
    clock = time.perf_counter_ns
    marks = [clock()]
    for _ in arm.pipeline.steps(start([query]), arm.index):
        marks.append(clock())
    times = [(after - before) / 1e6 for before, after in itertools.pairwise(marks)]
    return [*times, (marks[-1] - marks[0]) / 1e6]


def percentiles(samples_ms: NDArray[np.float64], seed: int = 13, resamples: int = 1000) -> Mapping[str, float]:
    """p50, p95, p99 and mean of one column of samples, with 95% bootstrap intervals of p50 and p95.

    Percentiles are taken by linear interpolation; intervals by the percentile bootstrap over samples.
    """
    generator = np.random.default_rng(seed)
    draws = generator.choice(samples_ms, size=(resamples, len(samples_ms)), replace=True)
    drawn = np.percentile(draws, [50, 95], axis=1)
    p50, p95, p99 = np.percentile(samples_ms, [50, 95, 99])
    lows, highs = np.percentile(drawn, 2.5, axis=1), np.percentile(drawn, 97.5, axis=1)
    return {
        "p50": float(p50),
        "p50_low": float(lows[0]),
        "p50_high": float(highs[0]),
        "p95": float(p95),
        "p95_low": float(lows[1]),
        "p95_high": float(highs[1]),
        "p99": float(p99),
        "mean": float(samples_ms.mean()),
    }
