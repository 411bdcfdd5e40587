"""How often `calibration=evidence` is wrong about whether a query has an answer, and its numbers fitted to queries.

    python -m research.evidence exp=recommended calibration=evidence

It is fitted on the train queries and their near misses: the same queries without the documents that answer them. Prints
the configured numbers and those fitted without the query that they judge, and the overrides with the fitted ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragbench.base import console
from ragbench.base.rankings import QueryState
from ragbench.base.types import BenchmarkError, ConfigError, Query
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.extras.fit import training
from ragbench.extras.fit.stages.calibrate_evidence import SIGNS, CalibrateByEvidence
from ragbench.index.index import Index
from ragbench.search.engine.pipeline import Pipeline, start
from ragbench.search.stages.stage import StateProperty, fused

ANSWERED, NEAR_MISS, NO_ANSWER = "answered", "near miss", "no answer"
_DEPTH = 10  # first documents among which an answer must be
_LOOSE = 1e3  # of the penalty of three weights: hardly any


def main() -> None:
    """Fit, and print both errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", help="configuration with calibration=evidence")
    parser.add_argument("--threshold", type=float, default=0.3, help="confidence below which a search is silent")
    arguments = parser.parse_args()
    settings = composition.compose(arguments.overrides)
    stages, benchmark = settings.pipeline.stages, settings.benchmark()
    position = next((n for n, (_, stage) in enumerate(stages) if isinstance(stage, CalibrateByEvidence)), None)
    if position is None:
        raise ConfigError("the configuration needs calibration=evidence")
    stage = stages[position][1]
    assert isinstance(stage, CalibrateByEvidence)
    arm = training.cut(settings, benchmark, stages[:position])
    qids = {topic.qid for topic in training.fitted_on(benchmark)}
    gathered = gather(arm.pipeline, stage, arm.index, benchmark, qids)
    judged = {
        "as configured": probabilities(stage, gathered),
        "fitted, held out": held_out_probabilities(gathered),
    }
    rows = [
        {"calibration": name, **silences(estimates, gathered, arguments.threshold)}
        for name, estimates in judged.items()
    ]
    console.print_table(pd.DataFrame(rows), f"{len(qids)} training queries and their near misses")
    fitted = fit_evidence(gathered)
    overrides = ["calibration=evidence", f"calibration.bias={fitted.bias:g}"]
    for key, values in (("weights", fitted.weights), ("typical", fitted.typical)):
        overrides += [f"calibration.{key}.{name}={value:g}" for name, value in values.items()]
    print(" ".join(overrides))


@dataclass(frozen=True)
class SignSample:
    """Signs of searches, shape (n, 3) in the order of SIGNS, what each search was, and the group of its topic.

    `kind`: `answered`, an answer is among the first ten documents; `near miss`, the same topic without the documents
    that answer it; `no answer`, a topic that is known to have none.
    """

    signs: NDArray[np.float64]
    kind: NDArray[np.str_]
    group: NDArray[np.str_]


def gather(
    pipeline: Pipeline, stage: CalibrateByEvidence, index: Index, benchmark: Benchmark, qids: set[str]
) -> SignSample:
    """The evidence in topics of a benchmark; `pipeline` ends before `stage`, which says what the signs are."""
    topics = [topic for topic in benchmark.topics if topic.qid in qids]
    fusion = next(position for position, (_, stage) in enumerate(pipeline) if StateProperty.FUSED in stage.provides)
    states: Sequence[QueryState] = start([Query(topic.qid, topic.text, topic.hypothesis) for topic in topics])
    for _, each in pipeline.stages[:fusion]:
        states = each(states, index)
    grades = [benchmark.document_qrels.get(topic.qid, {}) for topic in topics]
    good = [{docno for docno, grade in of_topic.items() if grade > 0} for of_topic in grades]
    missed = [_without(state, index, names) for state, names in zip(states, good, strict=True)]
    rows, kinds, groups = [], [], []
    for near, batch in ((False, states), (True, missed)):
        states_after: Sequence[QueryState] = batch
        for _, each in pipeline.stages[fusion:]:
            states_after = each(states_after, index)
        for topic, state, names in zip(topics, states_after, good, strict=True):
            kind = NO_ANSWER if not names else NEAR_MISS if near else ANSWERED
            if not len(fused(state)) or (near and not names) or (kind == ANSWERED and not _found(state, index, names)):
                continue
            signs = stage.signs(state, index)
            rows.append([signs.get(name, stage.typical[name]) for name in SIGNS])
            kinds.append(kind)
            groups.append(topic.cluster)
    return SignSample(np.array(rows, dtype=np.float64).reshape(-1, len(SIGNS)), np.array(kinds), np.array(groups))


def fit_evidence(evidence: SignSample) -> CalibrateByEvidence:
    """Logistic regression; near misses and topics without an answer together weigh as much as answered ones."""
    from sklearn.linear_model import LogisticRegression

    answered = evidence.kind == ANSWERED
    if not answered.any() or answered.all():
        raise BenchmarkError("there is nothing to fit: the topics need some with an answer that is found")
    weights = np.ones(len(answered))
    misses = [kind for kind in (NEAR_MISS, NO_ANSWER) if (evidence.kind == kind).any()]
    for kind in misses:
        weights[evidence.kind == kind] = answered.sum() / len(misses) / (evidence.kind == kind).sum()
    typical = evidence.signs[answered].mean(axis=0)
    model = LogisticRegression(C=_LOOSE).fit(evidence.signs - typical, answered, sample_weight=weights)

    def named(values: NDArray[np.float64]) -> Mapping[str, float]:
        return {name: round(float(value), 3) for name, value in zip(SIGNS, values, strict=True)}

    return CalibrateByEvidence(round(float(model.intercept_[0]), 3), named(model.coef_[0]), named(typical))


def probabilities(stage: CalibrateByEvidence, evidence: SignSample) -> NDArray[np.float64]:
    """The probability of an answer that a stage gives to each search, shape (n,)."""
    return np.array([stage.probability(dict(zip(SIGNS, row, strict=True))) for row in evidence.signs.tolist()])


def held_out_probabilities(evidence: SignSample) -> NDArray[np.float64]:
    """The probability of each search by a fit without its topic and the topic's paraphrases, shape (n,)."""
    refusal = "evidence can only be judged on topics of at least two groups"
    estimates = np.zeros(len(evidence.kind))
    for learn, test in training.leave_out(evidence.group.tolist(), refusal):
        estimates[test] = probabilities(fit_evidence(_part(evidence, learn)), _part(evidence, test))
    return estimates


def silences(estimates: NDArray[np.float64], evidence: SignSample, threshold: float) -> Mapping[str, float]:
    """The shares of answered searches below a threshold (false silence) and of others not below it (missed silence)."""
    silent = estimates < threshold
    shares = {"false silence": float(silent[evidence.kind == ANSWERED].mean())}
    for kind in (NEAR_MISS, NO_ANSWER):
        chosen = evidence.kind == kind
        shares[f"missed silence, {kind}"] = float((~silent[chosen]).mean()) if chosen.any() else float("nan")
    return shares


def _part(evidence: SignSample, places: NDArray[np.intp]) -> SignSample:
    return SignSample(evidence.signs[places], evidence.kind[places], evidence.group[places])


def _without(state: QueryState, index: Index, docnos: set[str]) -> QueryState:
    """The state as if some documents were not in the collection."""
    rows = [index.chunks.document_number[docno] for docno in docnos if docno in index.chunks.document_number]
    removed = np.isin(index.chunks.document, rows)
    rankings = {
        source: replace(ranking.keep(~removed[ranking.chunks]), query_vector=ranking.query_vector)
        for source, ranking in state.rankings.items()
    }
    return replace(state, rankings=rankings)


def _found(state: QueryState, index: Index, docnos: set[str]) -> bool:
    first = dict.fromkeys(index.chunks.docno(chunk) for chunk in fused(state).chunks.tolist())
    return not docnos.isdisjoint(list(first)[:_DEPTH])


if __name__ == "__main__":
    main()
