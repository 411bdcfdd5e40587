"""Effects of a finished run when a model graded its pool and persons judged some of the topics blind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.benchmark.agreement import Agreement, agreement
from ragbench.benchmark.benchmark import Benchmark, Qrels
from ragbench.benchmark.judge import graded
from ragbench.benchmark.native import best_sections
from ragbench.benchmark.pool import read_pool, read_run
from ragbench.comparison.policy import Policy
from ragbench.comparison.ppi import powered
from ragbench.errors import ResultsError
from ragbench.evaluation import measures
from ragbench.experiment.results import DOCUMENTS, Results

if TYPE_CHECKING:
    import pandas as pd

_DRAWS = 2_000


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


def judged(results: Results, benchmark: Benchmark, model: Path, sample: Path) -> ModelJudged:
    """The effects of the arms of a run against its first, by documents; `model` and `sample` are graded pools.

    Judgments that the benchmark has count for both. Raises ResultsError for too few topics of persons, for grades of
    other topics, and for a sample that is not all graded.
    """
    import pandas as pd

    by_model, by_persons = graded(model), graded(sample)
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
        found = powered(
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
        _kappa_interval(by_persons, by_model, policy.seed),
        wilson(round(told.same * told.n_pairs), told.n_pairs),
        pd.DataFrame(rows, columns=names),
    )


def wilson(hits: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's 95% interval of a share (JASA 22, 1927)."""
    share, over = hits / n, 1 + z**2 / n
    centre = (share + z**2 / (2 * n)) / over
    reach = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / over
    return float(max(0.0, centre - reach)), float(min(1.0, centre + reach))


def quadratic_kappa(counts: NDArray[np.float64]) -> float:
    """Cohen's kappa (1968) with squared weights of a table of counts, (grades, grades); NaN where it is undefined."""
    grades = np.arange(len(counts))
    weights = np.subtract.outer(grades, grades) ** 2
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(1.0, counts.sum())
    by_chance = float((weights * expected).sum())
    return 1 - float((weights * counts).sum()) / by_chance if by_chance > 0 else float("nan")


def _kappa_interval(first: Qrels, second: Qrels, seed: int) -> tuple[float, float]:
    """Its 95% interval, by drawing topics again: grades of one topic are no independent ones."""
    tables = []
    for qid in sorted(set(first) & set(second)):
        counts = np.zeros((4, 4))
        for name in set(first[qid]) & set(second[qid]):
            counts[first[qid][name], second[qid][name]] += 1
        tables.append(counts)
    stacked = np.stack(tables)
    generator = np.random.default_rng([seed, 3])
    drawn = [
        quadratic_kappa(stacked[generator.integers(len(tables), size=len(tables))].sum(axis=0)) for _ in range(_DRAWS)
    ]
    known = [value for value in drawn if value == value] or [float("nan")]
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)


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
