"""Fit isotonic calibration on the relevant and other hits of judged queries, and judge it on held-out queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ragbench.base.types import BenchmarkError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.extras.fit import training
from ragbench.index.chunks import ChunkTable
from ragbench.search.stages.calibrate import CalibrateByCurve
from ragbench.search.stages.stage import Index, QueryState, Stage, fused

_DIGITS = 6
_SAMPLED = 20  # hits of a query
Calibration = Callable[[Sequence[QueryState]], Sequence[QueryState]]


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
