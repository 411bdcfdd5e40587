"""Effects of a finished run when a model graded its pool and persons judged some of the topics blind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.benchmark.agreement import Agreement, agreement
from ragbench.benchmark.benchmark import Benchmark, Qrels
from ragbench.benchmark.judge import grades_of
from ragbench.benchmark.native import best_sections
from ragbench.benchmark.pool import read_pool, read_run
from ragbench.comparison.policy import Policy
from ragbench.comparison.ppi import prediction_powered_mean
from ragbench.comparison.raters import kappa_interval, wilson
from ragbench.errors import ResultsError
from ragbench.evaluation import measures
from ragbench.experiment.measurements import DOCUMENTS, Measurements

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ModelJudged:
    """`agreement` of model and persons, with intervals of the quadratic kappa and of the share of equal grades.

    `effects`: a row for every arm but the first: arm, effect, low, high (prediction-powered), weight, persons,
    persons_low, persons_high (their topics alone), model (its grades alone), n, n_model.
    """

    agreement: Agreement
    kappa: tuple[float, float]
    same: tuple[float, float]
    effects: pd.DataFrame

    @property
    def sentence(self) -> str:
        """How far the model agrees with persons, which belongs beside every figure that rests on it."""
        found = self.agreement
        return (
            f"The model and persons graded {found.n_pairs} pairs of {found.n_topics} topics: {found.same:.0%} equal "
            f"[{self.same[0]:.0%}, {self.same[1]:.0%}], quadratic kappa {found.kappa_quadratic:.2f} "
            f"[{self.kappa[0]:.2f}, {self.kappa[1]:.2f}]."
        )


def judged(results: Measurements, benchmark: Benchmark, model: Path, sample: Path) -> ModelJudged:
    """The effects of the arms of a run against its first, by documents; `model` and `sample` are graded pools.

    Judgments that the benchmark has count for both. Raises ResultsError for too few topics of persons, for grades of
    other topics, and for a sample that is not all graded.
    """
    import pandas as pd

    by_model, by_persons = grades_of(model), grades_of(sample)
    open_ = sum(not row["grade"].strip() for row in read_pool(sample).rows)
    if open_ or not by_persons:
        raise ResultsError(f"{sample} has {open_} pairs without a grade: grade them with ragbench judge {sample}")
    qids = sorted(set(by_model) | set(by_persons))
    known = {topic.qid for topic in benchmark.topics}
    if strangers := [qid for qid in qids if qid not in known]:
        raise ResultsError(f"{model} grades topic {strangers[0]}, which '{benchmark.name}' has not: name its run")
    policy = Policy.of(results.config(results.arms[0]))
    runs = {arm: read_run(results.arm_path(arm) / DOCUMENTS) for arm in results.arms}
    sampled = [qid for qid in qids if qid in by_persons]
    others = [qid for qid in qids if qid not in by_persons]
    machine = _values(runs, _with(benchmark, by_model, qids), policy.measure)
    person = _values(runs, _with(benchmark, by_persons, sampled), policy.measure)
    base, *rest = results.arms
    rows = []
    for arm in rest:
        found = prediction_powered_mean(
            _gap(person, arm, base, sampled), _gap(machine, arm, base, sampled), _gap(machine, arm, base, others),
            policy.statistics.confidence,
        )  # fmt: skip
        alone = (found.persons, found.persons_low, found.persons_high, found.model, found.n, found.n_model)
        rows.append((arm, found.mean, found.low, found.high, found.weight, *alone))
    told = agreement(by_persons, by_model)
    names = [
        "arm",
        "effect",
        "low",
        "high",
        "weight",
        "persons",
        "persons_low",
        "persons_high",
        "model",
        "n",
        "n_model",
    ]
    return ModelJudged(
        told,
        kappa_interval(by_persons, by_model, policy.seed),
        wilson(round(told.same * told.n_pairs), told.n_pairs),
        pd.DataFrame(rows, columns=names),
    )


def _with(benchmark: Benchmark, grades: Qrels, qids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Judgments of documents of some topics, with grades of sections added: the best of a document counts."""
    found = {qid: dict(benchmark.document_qrels.get(qid, {})) for qid in qids}
    for qid, best in best_sections({qid: grades[qid] for qid in qids if qid in grades}).items():
        for docno, grade in best.items():
            found[qid][docno] = max(grade, found[qid].get(docno, grade))
    return found


def _values(
    runs: Mapping[str, Mapping[str, Sequence[tuple[str, float]]]], qrels: Qrels, measure: str
) -> dict[str, dict[str, float]]:
    """By arm and topic; a topic to which nothing is relevant has none."""
    found = {}
    for arm, run in runs.items():
        frame = measures.evaluate({qid: list(run.get(qid, [])) for qid in qrels}, qrels, [measure])
        rows = frame[frame["measure"] == measure]
        found[arm] = dict(zip(rows["qid"], rows["value"], strict=True))
    return found


def _gap(values: Mapping[str, Mapping[str, float]], arm: str, base: str, qids: Sequence[str]) -> list[float]:
    """The effect of each topic, 0 where nothing is relevant: no arm can then be better."""
    return [values[arm].get(qid, 0.0) - values[base].get(qid, 0.0) for qid in qids]
