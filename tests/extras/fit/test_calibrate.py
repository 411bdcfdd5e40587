"""Fitting isotonic calibration, by hand on a few queries."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import BenchmarkError, Query
from ragbench.benchmark.benchmark import Topic
from ragbench.extras.fit.calibrate import (
    CalibrationSample,
    curve,
    fit,
    left_out,
    quality,
    sample,
    threshold_losing,
    thresholds_left_out,
)
from ragbench.search.stages.calibrate import CalibrateByCurve


def state(qid: str, scores: list[float], best: float | None = None) -> QueryState:
    made = QueryState(Query(qid, qid), fused=Ranking.ordered(range(len(scores)), scores))
    return made if best is None else made.with_ranking("dense", Ranking.ordered([0], [best]))


def flags(*values: int) -> np.ndarray:
    return np.array(values, dtype=bool)


def test_calibration_curve_pools_what_would_decrease() -> None:
    # outcomes 0, 1, 0, 1, 1 at scores 1 to 5: those at 2 and 3 are pooled to 1/2
    x, y = curve(np.array([1.0, 2, 3, 4, 5]), flags(0, 1, 0, 1, 1))
    assert np.interp([1, 2, 3, 4, 5], x, y) == pytest.approx([0, 0.5, 0.5, 1, 1])
    assert list(x) == sorted(set(x))


def test_calibration_equal_scores_get_their_mean() -> None:
    x, y = curve(np.array([0.2, 0.2, 0.2, 0.4]), flags(0, 0, 1, 1))
    assert np.interp([0.2, 0.4], x, y) == pytest.approx([1 / 3, 1])


def test_calibration_sample_reads_sections_where_they_are_judged_and_documents_where_not() -> None:
    table = SimpleNamespace(section_ids=[("a#x", "a#y"), ("a#z",), ("b#x",)], docno=lambda chunk: "aab"[chunk])
    states = [state("q1", [0.3, 0.2, 0.1]), state("q2", [0.3])]
    benchmark = SimpleNamespace(
        section_qrels={"q1": {"a#y": 2, "b#x": 0}},
        document_qrels={"q1": {"a": 2}},
        by_section=True,
        topics=(Topic("q1", "q1", group="g"), Topic("q2", "q2")),
    )
    judged = sample(states, table, benchmark)
    assert [row.tolist() for row in judged.relevant] == [[True, False, False], [False]]
    assert judged.answerable.tolist() == [True, False]
    assert judged.groups == ("g", "q2")
    benchmark.by_section = False
    assert [row.tolist() for row in sample(states, table, benchmark).relevant] == [[True, True, False], [False]]


def judged(n: int = 6) -> CalibrationSample:
    """Half of the queries have an answer; their first hits are right, at high scores and high cosines."""
    states = [state(f"q{i}", [0.03, 0.01], best=0.9 if i % 2 else 0.6) for i in range(n)]
    relevant = [flags(i % 2, 0) for i in range(n)]
    return CalibrationSample(
        tuple(states), tuple(relevant), flags(*(i % 2 for i in range(n))), tuple(f"g{i}" for i in range(n))
    )


def test_calibration_fits_hits_of_answerable_queries() -> None:
    assert fit(judged()) == CalibrateByCurve(x=(0.01, 0.03), y=(0.0, 1.0))


def test_calibration_nothing_to_fit_is_refused() -> None:
    none = replace(judged(), answerable=flags(0, 0, 0, 0, 0, 0))
    with pytest.raises(BenchmarkError, match="no query of the split has a relevant document"):
        fit(none)


def test_calibration_no_query_is_calibrated_by_a_fit_that_saw_it_or_its_paraphrase() -> None:
    seen: list[tuple[str, ...]] = []
    given = replace(judged(), groups=("g0", "g1", "g0", "g1", "g2", "g3"))

    def remember(part: CalibrationSample):
        seen.append(tuple(state.query.qid for state in part.states))
        return lambda states: [state.with_note(str(len(seen))) for state in states]

    states = left_out(given, remember)
    assert [state.query.qid for state in states] == [f"q{i}" for i in range(6)]
    for number, state in enumerate(states):
        learned_from = seen[int(state.notes[0]) - 1]
        assert not {q for q in learned_from if given.groups[int(q[1:])] == given.groups[number]}
    with pytest.raises(BenchmarkError, match="at least two groups"):
        left_out(replace(given, groups=("g",) * 6), remember)


def test_calibration_quality_by_hand() -> None:
    states = [state("q0", [0.8, 0.4]), state("q1", [0.2]), state("q2", [0.6])]
    calibrated = CalibrationSample(tuple(states), (flags(1, 0), flags(1), flags(0)), flags(1, 1, 0), ("a", "b", "c"))
    measures = quality(calibrated, threshold=0.5)
    assert measures == {
        # .2^2 + .4^2 + .8^2 + .6^2 over four hits
        "Brier": pytest.approx((0.04 + 0.16 + 0.64 + 0.36) / 4, rel=1e-6),
        "silent without answer": 0.0,
        "silent with answer": 0.5,
        "relevant kept": 0.5,
    }
    # thresholds of their own: the second passes at .2, the third is silent at .7
    shares = quality(calibrated, np.array([0.5, 0.2, 0.7]))
    assert (shares["silent without answer"], shares["silent with answer"], shares["relevant kept"]) == (1.0, 0.0, 1.0)


def test_calibration_threshold_loses_no_more_than_it_may() -> None:
    states = tuple(state(f"q{n}", [0.1 * (n + 1), 0.01]) for n in range(5))  # relevant at .1 .2 .3 .4 .5
    calibrated = CalibrationSample(states, (flags(1, 0),) * 5, flags(*[1] * 5), tuple("abcde"))
    assert [threshold_losing(calibrated, loss) for loss in (0, 0.19, 0.2, 0.5, 1)] == [0.1, 0.1, 0.2, 0.3, 0.5]
    # without the first, the least of the others
    assert thresholds_left_out(calibrated, 0.0).tolist() == [0.2, 0.1, 0.1, 0.1, 0.1]
    nothing = replace(calibrated, relevant=(flags(0, 0),) * 5)
    with pytest.raises(BenchmarkError, match="nothing relevant is found"):
        threshold_losing(nothing, 0.1)
