"""`ragbench compare --model-grades`: effects of a run when a model graded its pool and annotators some topics of it.

Prediction-powered inference: a mean from few topics judged by annotators and many judged by a model. The mean of the
model's values is corrected by its error on the topics that both judged. The weight of the model minimises the variance
(PPI++; Angelopoulos, Duchi and Zrnic 2023): a useless model gets weight 0, which leaves the mean of the annotators.
Valid however bad the model is, as long as the annotators' topics are a random sample.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ragbench.base import console, minimums
from ragbench.base.errors import ConfigError, ResultsError
from ragbench.base.fingerprint import plain
from ragbench.benchmark.benchmark import Benchmark, Qrels
from ragbench.evaluation import measures
from ragbench.evidence.policy import Policy
from ragbench.evidence.statistics import TIE
from ragbench.extras.collect.agreement import Agreement, agreement, kappa_interval, wilson
from ragbench.extras.collect.judge import grades_of, with_best_sections
from ragbench.extras.collect.pool import read_pool
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
    policy = Policy.of(results.shared_config)
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
        rows.append((arm, *astuple(corrected)))
    names = ["arm", "effect", *(field.name for field in fields(PoweredMean)[1:])]
    agreed = agreement(by_annotators, by_model)
    return ModelJudged(
        agreed,
        kappa_interval(by_annotators, by_model, policy.seed),
        wilson(round(agreed.same * agreed.n_pairs), agreed.n_pairs),
        pd.DataFrame(rows, columns=names),
    )


def _add_grades(benchmark: Benchmark, grades: Qrels, qids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Judgments of the documents of some topics, with grades of sections added: the best grade of a document counts."""
    judged = {qid: benchmark.document_qrels.get(qid, {}) for qid in qids}
    return with_best_sections(judged, {qid: grades[qid] for qid in qids if qid in grades})


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


@dataclass(frozen=True)
class PoweredMean:
    """A mean with its interval. `weight` (0 to 1): of the model. `annotators` and `model`: the means of each alone.

    `annotators_low` and `annotators_high` bound the mean of their `n` topics; the model judged `n_model` others.
    """

    mean: float
    low: float
    high: float
    weight: float
    annotators: float
    annotators_low: float
    annotators_high: float
    model: float
    n: int
    n_model: int


def prediction_powered_mean(
    annotators: ArrayLike, model: ArrayLike, elsewhere: ArrayLike, confidence: float = 0.95
) -> PoweredMean:
    """The mean over topics: `annotators` and `model` (n,) for topics that both judged, `elsewhere` for others.

    Raises ResultsError for fewer than `minimums.HUMAN_GRADED` topics judged by annotators.
    """
    from scipy.special import stdtrit

    gold, model_same, model_rest = (np.asarray(values, dtype=np.float64) for values in (annotators, model, elsewhere))
    n, more = len(gold), len(model_rest)
    if n < minimums.HUMAN_GRADED:
        raise ResultsError(
            f"people judged {n} topics, and a model's grades count only next to {minimums.HUMAN_GRADED} or more: "
            "judge a larger sample"
        )
    others = float(np.var(model_rest, ddof=1)) / more if more > 1 else 0.0
    spread = float(np.var(model_same, ddof=1)) / n + others
    covariance = float(np.cov(gold, model_same, ddof=1)[0, 1]) / n
    weight = min(1.0, max(0.0, covariance / spread)) if more > 1 and spread > TIE**2 else 0.0
    shift = weight * (float(model_rest.mean()) - float(model_same.mean())) if weight else 0.0
    variance = float(np.var(gold - weight * model_same, ddof=1)) / n + weight**2 * others
    t = -float(stdtrit(n - 1, (1 - confidence) / 2))
    centre, alone = float(gold.mean()) + shift, float(gold.mean())
    reach, reach_alone = t * math.sqrt(variance), t * math.sqrt(float(np.var(gold, ddof=1)) / n)
    interval, interval_alone = (centre - reach, centre + reach), (alone - reach_alone, alone + reach_alone)
    naive = float(np.concatenate([model_same, model_rest]).mean())
    return PoweredMean(centre, *interval, weight, alone, *interval_alone, naive, n, more)


def compare(sources: Sequence[Path], arguments: argparse.Namespace) -> int:
    """Print the effects of one run's arms from grades of a model, corrected by human grades."""
    from ragbench.results import measured_data, measurements

    if not arguments.model_grades or not arguments.sample:
        raise ConfigError("--model-grades and --sample go together: grades of a model count only next to human grades")
    if len(sources) != 1 or not sources[0].is_dir():
        raise ConfigError("--model-grades takes one run: name its folder, or @1")
    measured = measurements.load(sources[0])
    benchmark = measured_data.benchmark_of(measured, judged_since=True)
    measured_effects = measure_effects(measured, benchmark, Path(arguments.model_grades), Path(arguments.sample))
    if arguments.json:
        agreement = {
            name: value for name, value in plain(measured_effects.agreement).items() if name != "disagreements"
        }
        effects = measured_effects.effects
        console.print_json(
            {"agreement": agreement, "kappa": measured_effects.kappa, "same": measured_effects.same, "effects": effects}
        )
        return 0
    signed = dict.fromkeys(measured_effects.effects.columns, "+.3f") | {"weight": ".2f"}
    console.print_table(
        measured_effects.effects, f"Change from {measured.arms[0]}, judged by a model and annotators", signed
    )
    console.print_text(measured_effects.sentence)
    return 0
