"""What every fit begins and ends with.

It begins with a pipeline cut where the fit comes, and its answers to training topics. It
ends with the gain on held-out queries, and with a comparison on the test topics, which is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.base import minimums
from ragbench.base.formatting import with_interval
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.split import TRAIN
from ragbench.config.arm_builder import ArmBuilder, Say
from ragbench.evidence.policy import Policy
from ragbench.results import comparisons
from ragbench.search.engine import executor
from ragbench.search.engine.executor import Arm
from ragbench.search.engine.pipeline import Pipeline

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.base.types import QueryState
    from ragbench.benchmark.benchmark import Benchmark, Topic
    from ragbench.config.settings import Settings
    from ragbench.evidence.statistics import Comparison
    from ragbench.search.stages.stage import Stage

Stages = Sequence[tuple[str, "Stage"]]
Values = NDArray[np.float64]


def cut(settings: Settings, benchmark: Benchmark, stages: Stages, say: Say = print) -> Arm:
    """The arm of the settings with these of its stages; indexes that are missing are built."""
    (arm,) = ArmBuilder.of(settings, benchmark, say).arms([settings])
    return Arm(arm.name, Pipeline(tuple(stages)), arm.index)


def answers(arm: Arm, topics: Iterable[Topic]) -> Sequence[QueryState]:
    """The states of the topics after the last stage of the arm."""
    (outcome,) = executor.execute([arm], [topic.query() for topic in topics])
    return outcome.final


def compare(candidate: Values, baseline: Values, settings: Settings) -> Comparison:
    """Compare what a fit learned with its start, by query, shapes (n,)."""
    return Policy.of(settings.config).compare([candidate], [baseline])[0]


def table(measured: Mapping[str, Comparison | None]) -> pd.DataFrame:
    """A row for the gain of a fit on each kind of topics that it was measured on, as nDCG@10."""
    import pandas as pd

    rows = [
        {
            "measured on": name,
            "topics": comparison.n,
            "before": comparison.mean_baseline,
            "learned": comparison.mean_candidate,
            "gain": with_interval(comparison.difference, comparison.ci_low, comparison.ci_high, 4),
            "p": comparison.p_value,
        }
        for name, comparison in measured.items()
        if comparison is not None
    ]
    return pd.DataFrame(rows)


def record_confirmation(
    settings: Settings, benchmark: Benchmark, queries: Iterable[str], compared: object, command: str, arm: str
) -> str:
    """Record that a fit is compared with its start on test queries, and return the label of the comparison.

    `compared` identifies the measured data, as `compared` in `comparisons.record`.
    """
    number = comparisons.record(settings.ledger, benchmark.name, set(queries), [command, compared], command, [arm])
    return comparisons.describe(number)


def fitted_on(benchmark: Benchmark) -> tuple[Topic, ...]:
    """The topics for fitting: train, or all of fewer than `HALVES` topics without a train split.

    Use it for fits that are judged on held-out queries of the fit.
    """
    few = len(benchmark.topics) < minimums.TO_SPLIT and TRAIN not in benchmark.splits
    return benchmark.topics if few else benchmark.select(TRAIN)
