"""Fit the curves of isotonic calibration on judged queries, and compare calibrations on held-out queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.base.errors import BenchmarkError
from ragbench.base.types import QueryState
from ragbench.search.stages.calibrate import CalibrateByCurve
from ragbench.search.stages.stage import fused

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.index.chunks import ChunkTable

Curve = tuple[tuple[float, ...], tuple[float, ...]]
_DIGITS = 6


@dataclass(frozen=True)
class Sample:
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

    def part(self, places: Sequence[int] | NDArray[np.intp]) -> Sample:
        """The queries at some places."""
        return Sample(
            tuple(self.states[p] for p in places),
            tuple(self.relevant[p] for p in places),
            self.answerable[np.asarray(places, dtype=np.intp)],
            tuple(self.groups[p] for p in places),
        )


def sample(states: Sequence[QueryState], table: ChunkTable, benchmark: Benchmark, depth: int = 20) -> Sample:
    """The relevance of the first `depth` hits of every state; what was not judged counts as not relevant.

    A hit is relevant when a section it overlaps is, or its document in benchmarks that judge documents only.
    """
    by_section = benchmark.by_section
    qrels = benchmark.section_qrels if by_section else benchmark.document_qrels
    group_of = {topic.qid: topic.cluster for topic in benchmark.topics}
    relevant, answerable = [], []
    for state in states:
        good = {name for name, grade in qrels.get(state.query.qid, {}).items() if grade > 0}
        names = [
            table.section_ids[chunk] if by_section else (table.docno(chunk),) for chunk in fused(state).chunks[:depth]
        ]
        relevant.append(np.array([not good.isdisjoint(documents) for documents in names], dtype=np.bool_))
        answerable.append(bool(good))
    groups = tuple(group_of.get(state.query.qid, state.query.qid) for state in states)
    return Sample(tuple(states), tuple(relevant), np.array(answerable, dtype=np.bool_), groups)


def fit(judged: Sample, best_of: str | None = None) -> CalibrateByCurve:
    """Fit the stage: hits of answerable queries give the first curve, the best scores of all queries the second."""
    hits = [
        (fused(state).scores[: len(flags)], flags)
        for state, flags, answerable in zip(judged.states, judged.relevant, judged.answerable, strict=True)
        if answerable
    ]
    if not hits:
        raise BenchmarkError("there is nothing to calibrate on: no query of the split has a relevant document")
    x, y = curve(np.concatenate([scores for scores, _ in hits]), np.concatenate([flags for _, flags in hits]))
    if best_of is None:
        return CalibrateByCurve(x, y)
    best = np.array([best_score(state, best_of) for state in judged.states])
    finite = np.isfinite(best)
    if not finite.any():
        raise BenchmarkError(
            f"source '{best_of}' found nothing for any query of the split: name another with --best-of"
        )
    best_x, best_y = curve(best[finite], judged.answerable[finite])
    return CalibrateByCurve(x, y, best_of, best_x, best_y)


def best_score(state: QueryState, source: str) -> float:
    """The score of a source's first hit, minus infinity without one."""
    ranking = state.rankings.get(source)
    return float(ranking.scores[0]) if ranking is not None and len(ranking) else -np.inf


def curve(scores: NDArray[np.floating], outcomes: NDArray[np.bool_]) -> Curve:
    """The non-decreasing curve of least squares through (score, outcome), as its corners."""
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(np.asarray(scores, dtype=np.float64), outcomes.astype(np.float64))
    corners: dict[float, float] = {}
    for x, y in zip(model.X_thresholds_.tolist(), model.y_thresholds_.tolist(), strict=True):
        corners[float(f"{x:.{_DIGITS}g}")] = round(y, _DIGITS)
    return tuple(corners), tuple(corners.values())


Calibration = Callable[[Sequence[QueryState]], Sequence[QueryState]]


def left_out(judged: Sample, fitted: Callable[[Sample], Calibration], folds: int = 5) -> tuple[QueryState, ...]:
    """Every query of the sample calibrated by what was fitted without it and its paraphrases."""
    calibrated: dict[int, QueryState] = {}
    for learn, test in _folds(judged, folds):
        calibration = fitted(judged.part(learn))
        calibrated.update(zip(test.tolist(), calibration([judged.states[p] for p in test]), strict=True))
    return tuple(calibrated[i] for i in range(len(judged.states)))


def _folds(judged: Sample, folds: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The places to learn from and to test on, paraphrases together, every place tested once."""
    from sklearn.model_selection import GroupKFold

    count = min(folds, len(set(judged.groups)))
    if count < 2:
        raise BenchmarkError("calibrations can only be compared on queries of at least two groups")
    yield from GroupKFold(count).split(np.zeros(len(judged.states)), groups=judged.groups)


def threshold_losing(calibrated: Sample, loss: float) -> float:
    """The highest threshold, to four digits, that drops at most the share `loss` (0 to 1) of the relevant hits."""
    scores = np.sort(np.concatenate([_scores(state, flags)[flags] for state, flags in calibrated.pairs()]))
    if not len(scores):
        raise BenchmarkError("a threshold cannot be fitted: nothing relevant is found for any query of the split")
    least = float(scores[min(int(loss * len(scores) + 1e-9), len(scores) - 1)])
    return math.floor(least * 10_000) / 10_000


def thresholds_left_out(calibrated: Sample, loss: float, folds: int = 5) -> NDArray[np.float64]:
    """For every query the threshold that was fitted without it and its paraphrases."""
    thresholds = np.zeros(len(calibrated.states))
    for learn, test in _folds(calibrated, folds):
        thresholds[test] = threshold_losing(calibrated.part(learn), loss)
    return thresholds


def quality(calibrated: Sample, threshold: float | NDArray[np.float64]) -> Mapping[str, float]:
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


def _scores(state: QueryState, flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The scores of the hits that `flags` is about."""
    return fused(state).scores[: len(flags)].astype(np.float64)


def _share(flags: NDArray[np.bool_]) -> float:
    return float(flags.mean()) if len(flags) else float("nan")
