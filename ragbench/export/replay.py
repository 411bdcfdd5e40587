"""What a translated configuration is worth: the pipeline that the other system runs, measured on the run's topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ragbench.base.errors import BenchmarkError, ConfigError, ResultsError
from ragbench.base.formatting import counted, interval
from ragbench.base.types import Query, QueryState, Ranking
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.arm_builder import ArmBuilder
from ragbench.config.settings import Settings
from ragbench.evaluation.measures import DEPTH, PRIMARY, Run, document_run, evaluate, ndcg
from ragbench.evidence.statistics import compare
from ragbench.export.measured_arm import MeasuredArm
from ragbench.search.stages.fuse import Fuse

if TYPE_CHECKING:
    from ragbench.search.engine.executor import Arm

MAX_LOSS = 0.005
"""The loss of nDCG@10 up to which a translation is written without `--force`."""
_DRAWS = 60
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

    def nearest(self, settings: Settings, fusions: Sequence[Fuse]) -> tuple[Settings, str]:
        """The settings with one of `fusions`, each with the weights that give the best nDCG@10 on the train topics.

        Without train topics the first fusion is taken, with the weights that `settings` have.
        """
        try:
            queries = self.queries("train")
        except BenchmarkError:
            queries = []
        entry, configured = next(iter(settings.pipeline.all_of(Fuse).items()))
        if not queries:
            best = replace(fusions[0], weights=configured.weights)
            note = "no train topics to refit its weights"
        else:
            arm = self.arm(settings)
            states = [state for state in self._before_fusion(arm, queries) if state.rankings]
            sources = sorted({source for state in states for source in state.rankings})
            drawn = np.random.default_rng(_SEED).dirichlet(np.ones(len(sources)), size=_DRAWS).round(2)
            mixtures = [{name: configured.weights.get(name, 1.0) for name in sources}, dict.fromkeys(sources, 1.0)]
            mixtures += [dict(zip(sources, row.tolist(), strict=True)) for row in drawn]
            tried = [replace(fusion, weights=mixture) for fusion in fusions for mixture in mixtures]
            values = [self._gain([fusion.fuse(state, arm.index) for state in states], states, arm) for fusion in tried]
            best = tried[int(np.argmax(np.round(values, 6)))]
            note = f"weights refitted on {len(states)} train topics"
        changes = {f"{entry}.{name}": getattr(best, name) for name in ("method", "k", "norm", "missing")}
        changes |= {f"{entry}.weights": dict(best.weights), f"{entry}.norms": {}}
        return settings.with_values(changes), f"{best.describe()}, {note}"

    def _before_fusion(self, arm: Arm, queries: Sequence[Query]) -> Sequence[QueryState]:
        arm.index.prepare(arm.pipeline.needs)
        states_before: Sequence[QueryState] = ()
        for name, states in arm.pipeline.steps([QueryState(query) for query in queries], arm.index):
            if isinstance(dict(arm.pipeline.stages)[name], Fuse):
                break
            states_before = states
        return states_before

    def _gain(self, rankings: Sequence[Ranking], states: Sequence[QueryState], arm: Arm) -> float:
        changes = []
        table, qrels = arm.index.chunks, self.benchmark.document_qrels
        for ranking, state in zip(rankings, states, strict=True):
            grades = qrels.get(state.query.qid, {})
            if not any(grade > 0 for grade in grades.values()):
                continue
            rows = list(dict.fromkeys(table.document[ranking.chunks].tolist()))[:DEPTH]
            gains = [float(max(0, grades.get(table.docnos[row], 0))) for row in rows]
            changes.append(ndcg(gains, [float(grade) for grade in grades.values() if grade > 0]))
        return float(np.mean(changes)) if changes else 0.0
