"""What a translated configuration is worth: the pipeline that the other system runs, measured on the run's topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragbench.base.console import counted, interval
from ragbench.base.errors import ConfigError, ResultsError
from ragbench.base.types import Query
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.evaluation.measures import PRIMARY, document_run, evaluate
from ragbench.evidence.statistics import compare
from ragbench.export.measured_arm import MeasuredArm

if TYPE_CHECKING:
    from ragbench.benchmark.runs import Run
    from ragbench.search.engine.pipeline import Arm

MAX_LOSS = 0.005
"""The loss of nDCG@10 up to which a translation is written without `--force`."""
_SEED = 13


@dataclass(frozen=True)
class Replay:
    """nDCG@10 of the measured arm and of its translation over the same `topics`; `low` and `high` bound the change.

    `where` says what answered: an arm of ragbench, or the engine itself.
    """

    measured: float
    replayed: float
    low: float
    high: float
    topics: int
    where: str

    @property
    def loss(self) -> float:
        """What the translation loses; below 0 where it gains."""
        return self.measured - self.replayed

    @property
    def sentence(self) -> str:
        """Both scores and the interval of their difference in one line."""
        return (
            f"{PRIMARY} {self.measured:.3f} measured, {self.replayed:.3f} {self.where}: change "
            f"{interval(self.low, self.high)}, 95% CI, on {counted(self.topics, 'query')}"
        )

    def require(self, limit: float, format: str) -> None:
        """Raise ConfigError when the translation loses more than `limit`."""
        if round(self.loss, 6) > limit:
            raise ConfigError(
                f"{self.sentence}: --format {format} loses {self.loss:.3f}, more than --max-loss {limit:g}; export a "
                "bundle or another arm, or add --force (force=True in Python)"
            )


@dataclass(frozen=True)
class Bench:
    """The topics of a measured arm, and what builds arms to answer them again."""

    measured: MeasuredArm
    benchmark: Benchmark
    builder: ArmBuilder

    @staticmethod
    def of(measured: MeasuredArm) -> Bench:
        """That of a finished run. Raises ResultsError when its documents or topics have changed."""
        benchmark = measured.benchmark
        return Bench(measured, benchmark, ArmBuilder.of(measured.settings, benchmark))

    def queries(self, split: str | None = None) -> list[Query]:
        """The queries of a split, by default of that which was measured."""
        return [topic.query() for topic in self.benchmark.select(split or str(self.measured.results.record["split"]))]

    def arm(self, settings: Settings) -> Arm:
        """The arm of other settings over the same documents."""
        (arm,) = self.builder.arms([settings])
        return arm

    def replay(self, settings: Settings) -> Replay:
        """The score of other settings next to the measured one."""
        arm = self.arm(settings)
        states = arm.pipeline(self.queries(), arm.index)
        return self.score(document_run(states, arm.index.chunks), "emulated by ragbench")

    def score(self, run: Run, where: str) -> Replay:
        """A run over documents next to that of the measured arm. Raises ResultsError when no topic can be compared."""
        measured_run = self.measured.results.run(self.measured.name)
        values = []
        for answered in ({qid: measured_run.get(qid, ()) for qid in run}, run):
            frame = evaluate(answered, self.benchmark.document_qrels, [PRIMARY], self.benchmark.unanswerable)
            values.append(frame[frame["measure"] == PRIMARY].set_index("qid")["value"].sort_index())
        old, new = values
        if not len(old):
            raise ResultsError(
                f"no topic of {self.measured.results.folder} has a relevant document, so a translation cannot be priced"
            )
        comparison = compare(new.to_numpy(), old.to_numpy(), seed=_SEED)
        low, high = (comparison.difference if np.isnan(end) else end for end in (comparison.ci_low, comparison.ci_high))
        return Replay(comparison.mean_baseline, comparison.mean_candidate, float(low), float(high), comparison.n, where)
