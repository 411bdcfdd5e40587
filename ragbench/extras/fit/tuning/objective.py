"""What a hyperparameter search can see: the training topics, and the values of a configuration on them.

The search gets a benchmark without test topics and their judgments (`train_only`), and refuses any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from ragbench.base import minimums
from ragbench.base.fingerprint import digest
from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.benchmark.benchmark import TEST, TRAIN, Benchmark
from ragbench.config.settings import ArmBuilder
from ragbench.evaluation import latency, measures, passages
from ragbench.extras.fit.tuning.space import START, Space, Value, Values
from ragbench.extras.tracking.metrics import metric_name
from ragbench.index.index import Index
from ragbench.search.engine.pipeline import Arm, Outcome, Session


def objective(name: str, configured: Sequence[str]) -> str:
    """The measure of this name, as ir_measures writes it: one of the usual ones, or of the `configured` ones."""
    measures.check(configured)
    available = {metric_name(measure): measure for measure in (*measures.MEASURES, measures.SILENCE, *configured)}
    if (plain := metric_name(name)) not in available:
        raise ConfigError(f"tune.objective names '{name}'; known are {', '.join(available)}")
    return available[plain]


def searchable(benchmark: Benchmark) -> tuple[Benchmark, bool]:
    """The benchmark that a search may see, and whether test topics are held out from it.

    Topics without train and test halves, if they are too few to make them (`minimums.TO_SPLIT`), may all be seen, and
    nested folds give the verdict. Raises BenchmarkError for more topics without halves.
    """
    if {TRAIN, TEST} <= set(benchmark.splits):
        return train_only(benchmark), True
    if len(benchmark.topics) >= minimums.TO_SPLIT:
        raise BenchmarkError(
            f"benchmark '{benchmark.name}' has {len(benchmark.topics)} topics and no train and test halves: add "
            "data.resplit=13 to make them"
        )
    return replace(benchmark, topics=tuple(replace(topic, split=TRAIN) for topic in benchmark.topics)), False


def train_only(benchmark: Benchmark) -> Benchmark:
    """The benchmark without test topics and their judgments. BenchmarkError for a group with topics in both splits."""
    topics = benchmark.select(TRAIN)
    groups = {topic.group for topic in topics if topic.group}
    for topic in benchmark.topics:
        if topic.split != TRAIN and topic.group in groups:
            raise BenchmarkError(
                f"topics of group '{topic.group}' are in train and {topic.split}: split again with data.resplit=<seed>"
            )
    qids = [topic.qid for topic in topics]
    return replace(
        benchmark,
        topics=topics,
        document_qrels={qid: benchmark.document_qrels[qid] for qid in qids if qid in benchmark.document_qrels},
        section_qrels={qid: benchmark.section_qrels[qid] for qid in qids if qid in benchmark.section_qrels},
        quotes=tuple(quote for quote in benchmark.quotes if quote.qid in set(qids)),
    )


class TrainingValues:
    """Measures configurations on the training queries; keeps the states of stages and the values of pipelines."""

    def __init__(
        self,
        space: Space,
        benchmark: Benchmark,
        builder: ArmBuilder,
        measure: str,
    ) -> None:
        others = [topic.qid for topic in benchmark.topics if topic.split != TRAIN]
        if others:
            raise BenchmarkError(f"tuning may see training topics only, and was given '{others[0]}' (use train_only)")
        self.space, self.benchmark = space, benchmark
        self.measure = measure
        arms = builder.arms([*space.starts.values()])
        self._indexes: dict[str, Index] = {start: arm.index for start, arm in zip(space.starts, arms, strict=True)}
        self.index = self._indexes[""]
        self._session = Session([topic.query() for topic in benchmark.topics])
        self._arms: dict[frozenset[tuple[str, Value]], Arm] = {}
        self._seen: dict[str, Mapping[str, float]] = {}

    def arm(self, values: Values, name: str = "") -> Arm:
        """The pipeline with these values over the index of their start."""
        key = frozenset(values.items())
        if key not in self._arms:
            index = self._indexes[str(values.get(START, ""))]
            self._arms[key] = Arm("", self.space.apply(values).pipeline, index)
        return replace(self._arms[key], name=name)

    def identity(self, values: Values) -> str:
        """A key of the pipeline and index that these values give; equal pipelines and indexes have equal keys."""
        arm = self.arm(values)
        return digest([arm.pipeline.fingerprint, arm.index.spec])

    def __call__(self, values: Values) -> Mapping[str, float]:
        """The measure by qid, for every training query it applies to."""
        key = self.identity(values)
        if key not in self._seen:
            self.keep(values, self._session.outcome(self.arm(values)))
        return self._seen[key]

    def knows(self, values: Values) -> bool:
        """Whether these values, or others that give the same pipeline, were measured before."""
        return self.identity(values) in self._seen

    def keep(self, values: Values, outcome: Outcome) -> None:
        """Measure what the arm of these values found, here or elsewhere."""
        run = measures.document_run(outcome.final, self.arm(values).index.chunks)
        frame = measures.evaluate(
            run, self.benchmark.document_qrels, [] if self.measure == measures.SILENCE else [self.measure]
        )
        rows = frame[frame["measure"] == self.measure]
        self._seen[self.identity(values)] = dict(zip(rows["qid"], rows["value"].astype(float), strict=True))

    def passages(self, values: Values) -> Mapping[str, float]:
        """nDCG@10 of passages as they are returned, by query; empty where no passage is judged."""
        arm = self.arm(values)
        states, index = self._session.outcome(arm).final, arm.index
        units = passages.Passages(index.chunks, index.encoder.count_tokens, self.benchmark)
        frame = passages.evaluate(states, units, self.space.base.context_tokens)
        passage_rows = frame[frame["measure"] == measures.PRIMARY]
        return {str(qid): float(value) for qid, value in zip(passage_rows["qid"], passage_rows["value"], strict=True)}


def mean(values: Mapping[str, float], qids: frozenset[str] | None = None) -> float:
    """The mean over queries (of `qids`) that have a value, 0 without any; rounded, so that order does not matter."""
    chosen = [value for qid, value in sorted(values.items()) if qids is None or qid in qids]
    return round(float(np.mean(chosen)), 9) if chosen else 0.0


def time_samples(values: TrainingValues, variants: Mapping[str, Values]) -> dict[str, pd.DataFrame]:
    """The samples of every variant as tables, timed in turns over the training queries."""
    arms = [values.arm(variant, name) for name, variant in variants.items()]
    queries = [topic.query() for topic in values.benchmark.topics]
    timings = latency.measure(arms, queries, values.space.base.latency, again=False)
    return {name: timing.frame() for name, timing in timings.items()}
