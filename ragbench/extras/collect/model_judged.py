"""Effects of a finished run when a model graded its pool and annotators judged some of the topics blind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base.errors import ResultsError
from ragbench.benchmark.benchmark import Benchmark, Qrels
from ragbench.benchmark.native import best_sections
from ragbench.evaluation import measures
from ragbench.evidence.policy import Policy
from ragbench.extras.collect.agreement import Agreement, agreement
from ragbench.extras.collect.judge import grades_of
from ragbench.extras.collect.kappa_ci import kappa_interval, wilson
from ragbench.extras.collect.pool import read_pool
from ragbench.extras.collect.ppi import prediction_powered_mean
from ragbench.results.measurements import Measurements

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ModelJudged:
    """`agreement` of model and annotators, with intervals of the quadratic kappa and of the share of equal grades.

    `effects`: a row for every arm but the first: arm, effect, low, high (prediction-powered), weight, `annotators`,
    `annotators_low`, `annotators_high` (their topics alone), model (its grades alone), n, n_model.
    """

    agreement: Agreement
    kappa: tuple[float, float]
    same: tuple[float, float]
    effects: pd.DataFrame

    @property
    def sentence(self) -> str:
        """How far the model agrees with annotators, to be shown with every figure that uses its grades."""
        agreed = self.agreement
        return (
            f"Model and annotators graded {agreed.n_pairs} pairs of {agreed.n_topics} topics: {agreed.same:.0%} equal "
            f"[{self.same[0]:.0%}, {self.same[1]:.0%}], quadratic kappa {agreed.kappa_quadratic:.2f} "
            f"[{self.kappa[0]:.2f}, {self.kappa[1]:.2f}]."
        )


def measure_effects(results: Measurements, benchmark: Benchmark, model: Path, sample: Path) -> ModelJudged:
    """Compare the arms of a run with its first, by documents; `model` and `sample` are graded pools.

    Judgments that the benchmark has count for both. Raises ResultsError for too few topics judged by annotators, for
    grades of other topics, and for a sample with ungraded pairs."""
    import pandas as pd

    by_model, by_annotators = grades_of(model), grades_of(sample)
    ungraded = sum(not row["grade"].strip() for row in read_pool(sample).rows)
    if ungraded or not by_annotators:
        raise ResultsError(f"{sample} has {ungraded} pairs without a grade: grade them with ragbench judge {sample}")
    qids = sorted(set(by_model) | set(by_annotators))
    known_qids = {topic.qid for topic in benchmark.topics}
    if unknown := [qid for qid in qids if qid not in known_qids]:
        raise ResultsError(f"{model} grades topic {unknown[0]}, which '{benchmark.name}' does not have: name its run")
    policy = Policy.of(results.config(results.arms[0]))
    runs = {arm: results.run(arm) for arm in results.arms}
    sampled = [qid for qid in qids if qid in by_annotators]
    others = [qid for qid in qids if qid not in by_annotators]
    machine = _values(runs, _add_grades(benchmark, by_model, qids), policy.measure)
    human = _values(runs, _add_grades(benchmark, by_annotators, sampled), policy.measure)
    base, *other_arms = results.arms
    rows = []
    for arm in other_arms:
        corrected = prediction_powered_mean(
            _differences(human, arm, base, sampled),
            _differences(machine, arm, base, sampled),
            _differences(machine, arm, base, others),
            policy.statistics.confidence,
        )
        alone = (corrected.annotators, corrected.annotators_low, corrected.annotators_high, corrected.model)
        rows.append(
            (
                arm,
                corrected.mean,
                corrected.low,
                corrected.high,
                corrected.weight,
                *alone,
                corrected.n,
                corrected.n_model,
            )
        )
    agreed = agreement(by_annotators, by_model)
    names = [
        "arm",
        "effect",
        "low",
        "high",
        "weight",
        "annotators",
        "annotators_low",
        "annotators_high",
        "model",
        "n",
        "n_model",
    ]
    return ModelJudged(
        agreed,
        kappa_interval(by_annotators, by_model, policy.seed),
        wilson(round(agreed.same * agreed.n_pairs), agreed.n_pairs),
        pd.DataFrame(rows, columns=names),
    )


def _add_grades(benchmark: Benchmark, grades: Qrels, qids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Judgments of the documents of some topics, with grades of sections added: the best grade of a document counts."""
    grades_by_qid = {qid: dict(benchmark.document_qrels.get(qid, {})) for qid in qids}
    for qid, best in best_sections({qid: grades[qid] for qid in qids if qid in grades}).items():
        for docno, grade in best.items():
            grades_by_qid[qid][docno] = max(grade, grades_by_qid[qid].get(docno, grade))
    return grades_by_qid


def _values(
    runs: Mapping[str, Mapping[str, Sequence[tuple[str, float]]]], qrels: Qrels, measure: str
) -> dict[str, dict[str, float]]:
    """The measure by arm and topic, without topics that have no relevant document."""
    values = {}
    for arm, run in runs.items():
        frame = measures.evaluate({qid: list(run.get(qid, [])) for qid in qrels}, qrels, [measure])
        rows = frame[frame["measure"] == measure]
        values[arm] = dict(zip(rows["qid"], rows["value"], strict=True))
    return values


def _differences(values: Mapping[str, Mapping[str, float]], arm: str, base: str, qids: Sequence[str]) -> list[float]:
    """The effect of each topic, 0 for a topic without relevant documents: no arm can be better there."""
    return [values[arm].get(qid, 0.0) - values[base].get(qid, 0.0) for qid in qids]
