"""Fit calibrations on judged queries, and compare them on held-out queries.

Isotonic calibration is fitted on relevant and other hits, calibration by evidence on topics and their near misses: the
same topics without the documents that answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ragbench.base.errors import BenchmarkError
from ragbench.base.types import Query, QueryState
from ragbench.benchmark.benchmark import Benchmark
from ragbench.extras.fit import training
from ragbench.extras.fit.stages.calibrate_evidence import SIGNS, CalibrateByEvidence
from ragbench.index.chunks import ChunkTable
from ragbench.index.index import Index
from ragbench.search.engine.pipeline import Pipeline, start
from ragbench.search.stages.calibrate import CalibrateByCurve
from ragbench.search.stages.stage import Stage, StateProperty, fused

_DIGITS = 6
_SAMPLED = 20  # hits of a query
Calibration = Callable[[Sequence[QueryState]], Sequence[QueryState]]
ANSWERED, NEAR_MISS, NO_ANSWER = "answered", "near miss", "no answer"
_DEPTH = 10  # first documents among which an answer must be
_LOOSE = 1e3  # of the penalty of three weights: hardly any


@dataclass(frozen=True)
class CalibrationSample:
    """Judged queries before calibration, as states, with the relevance of each one's hits and whether it has an answer.

    `relevant[i]` (bool) belongs to the first hits of `states[i]`; `answerable` (bool) and `groups` (queries that
    paraphrase one need share a group) have one entry a query.
    """

    states: tuple[QueryState, ...]
    relevant: tuple[NDArray[np.bool_], ...]
    answerable: NDArray[np.bool_]
    groups: tuple[str, ...]

    def pairs(self) -> Iterator[tuple[QueryState, NDArray[np.bool_]]]:
        """Every state with the relevance of its hits."""
        return zip(self.states, self.relevant, strict=True)

    def part(self, places: Sequence[int] | NDArray[np.intp]) -> CalibrationSample:
        """The queries at some places."""
        return CalibrationSample(
            tuple(self.states[p] for p in places),
            tuple(self.relevant[p] for p in places),
            self.answerable[np.asarray(places, dtype=np.intp)],
            tuple(self.groups[p] for p in places),
        )


def sample(states: Sequence[QueryState], table: ChunkTable, benchmark: Benchmark) -> CalibrationSample:
    """The relevance of the first `_SAMPLED` hits of every state; what was not judged counts as not relevant.

    A hit is relevant when a section it overlaps is, or its document in benchmarks that judge documents only.
    """
    by_section = benchmark.by_section
    qrels = benchmark.section_qrels if by_section else benchmark.document_qrels
    group_of = {topic.qid: topic.cluster for topic in benchmark.topics}
    relevant, answerable = [], []
    for state in states:
        good = {name for name, grade in qrels.get(state.query.qid, {}).items() if grade > 0}
        names = [
            table.section_ids[chunk] if by_section else (table.docno(chunk),)
            for chunk in fused(state).chunks[:_SAMPLED]
        ]
        relevant.append(np.array([not good.isdisjoint(documents) for documents in names], dtype=np.bool_))
        answerable.append(bool(good))
    groups = tuple(group_of.get(state.query.qid, state.query.qid) for state in states)
    return CalibrationSample(tuple(states), tuple(relevant), np.array(answerable, dtype=np.bool_), groups)


def fit(judged: CalibrationSample) -> CalibrateByCurve:
    """Fit the curve to the hits of answerable queries."""
    hits = [
        (fused(state).scores[: len(flags)], flags)
        for state, flags, answerable in zip(judged.states, judged.relevant, judged.answerable, strict=True)
        if answerable
    ]
    if not hits:
        raise BenchmarkError("there is nothing to calibrate on: no query of the split has a relevant document")
    scores, relevant = zip(*hits, strict=True)
    return CalibrateByCurve(*curve(np.concatenate(scores), np.concatenate(relevant)))


def curve(scores: NDArray[np.floating], outcomes: NDArray[np.bool_]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The non-decreasing curve of least squares through (score, outcome), as its corners."""
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(np.asarray(scores, dtype=np.float64), outcomes.astype(np.float64))
    corners: dict[float, float] = {}
    for x, y in zip(model.X_thresholds_.tolist(), model.y_thresholds_.tolist(), strict=True):
        corners[float(f"{x:.{_DIGITS}g}")] = round(y, _DIGITS)
    return tuple(corners), tuple(corners.values())


def left_out(judged: CalibrationSample, fitted: Callable[[CalibrationSample], Calibration]) -> tuple[QueryState, ...]:
    """Every query of the sample calibrated by what was fitted without it and its paraphrases."""
    calibrated: dict[int, QueryState] = {}
    for learn, test in _parts(judged):
        calibration = fitted(judged.part(learn))
        calibrated.update(zip(test.tolist(), calibration([judged.states[p] for p in test]), strict=True))
    return tuple(calibrated[i] for i in range(len(judged.states)))


def _parts(judged: CalibrationSample) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    return training.leave_out(judged.groups, "calibrations can only be compared on queries of at least two groups")


def threshold_losing(calibrated: CalibrationSample, loss: float) -> float:
    """The highest threshold, to four digits, that drops at most the share `loss` (0 to 1) of the relevant hits."""
    scores = np.sort(np.concatenate([_scores(state, flags)[flags] for state, flags in calibrated.pairs()]))
    if not len(scores):
        raise BenchmarkError("a threshold cannot be fitted: nothing relevant is found for any query of the split")
    least = float(scores[min(int(loss * len(scores) + 1e-9), len(scores) - 1)])
    return math.floor(least * 10_000) / 10_000


def thresholds_left_out(calibrated: CalibrationSample, loss: float) -> NDArray[np.float64]:
    """For every query the threshold that was fitted without it and its paraphrases."""
    thresholds = np.zeros(len(calibrated.states))
    for learn, test in _parts(calibrated):
        thresholds[test] = threshold_losing(calibrated.part(learn), loss)
    return thresholds


def quality(calibrated: CalibrationSample, threshold: float | NDArray[np.float64]) -> Mapping[str, float]:
    """How well scores work as probabilities, and the effect of a threshold on them (one for all queries or one each).

    `Brier`: the mean square of score minus relevance over hits (0 is best). `silent without answer` and `silent with
    answer`: the shares of unanswerable and of answerable queries of which no hit reaches the threshold. `relevant
    kept`: the share of relevant hits that reach it.
    """
    answerable = calibrated.answerable
    scores = [_scores(state, flags) for state, flags in calibrated.pairs()]
    all_scores, all_relevant = np.concatenate(scores), np.concatenate(calibrated.relevant)
    passed = [
        query_scores >= least
        for query_scores, least in zip(scores, np.broadcast_to(threshold, len(scores)), strict=True)
    ]
    silent = np.array([not query_passed.any() for query_passed in passed])
    return {
        "Brier": float(np.mean((all_scores - all_relevant) ** 2)) if len(all_relevant) else float("nan"),
        "silent without answer": _share(silent[~answerable]),
        "silent with answer": _share(silent[answerable]),
        "relevant kept": _share(np.concatenate(passed)[all_relevant]),
    }


def comparison_rows(sample: CalibrationSample, stage: Stage, index: Index, threshold: float) -> list[dict[str, object]]:
    """The configured calibration as it is, and isotonic regression fitted without the queries it is applied to."""
    calibrated: dict[str, Sequence[QueryState]] = {
        f"configured: {stage.describe()}": stage(sample.states, index),
        "isotonic": left_out(sample, lambda part: partial(fit(part), index=index)),
    }
    return [
        {
            "calibration": name,
            "threshold": threshold,
            **quality(replace(sample, states=tuple(states)), threshold),
        }
        for name, states in calibrated.items()
    ]


def row_for_loss(loss: float, sample: CalibrationSample, stage: Stage, index: Index) -> dict[str, object]:
    """The configured calibration with the threshold that loses the share `loss`, fitted without the query it judges."""
    configured = replace(sample, states=tuple(stage(sample.states, index)))
    return {
        "calibration": f"configured: {stage.describe()}, fitted to lose {loss:g}",
        "threshold": threshold_losing(configured, loss),
        **quality(configured, thresholds_left_out(configured, loss)),
    }


def _scores(state: QueryState, flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The scores of the hits that `flags` is about."""
    return fused(state).scores[: len(flags)].astype(np.float64)


def _share(flags: NDArray[np.bool_]) -> float:
    return float(flags.mean()) if len(flags) else float("nan")


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
