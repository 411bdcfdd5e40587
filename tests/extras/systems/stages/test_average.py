"""Librarian's weighted average of scores (seed 004)."""

import pytest

from ragbench.base.rankings import Ranking
from ragbench.extras.systems.stages.librarian import AverageScores


@pytest.fixture
def given(state):
    made = state().with_ranking("dense", Ranking.ordered([0, 1], [0.8, 0.6]))
    return made.with_ranking("lexical", Ranking.ordered([1, 2], [10, 5]))


def averaged(given, **weights: float) -> dict[int, float]:
    stage = AverageScores(weights=weights) if weights else AverageScores()
    ranking = stage([given], None)[0].fused
    return dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))


def test_average_scores_half_and_half(given) -> None:
    # words become 1.0 and 0.5: 1 gets (0.6 + 1.0) / 2, 0 gets 0.8 / 2, 2 gets 0.5 / 2
    assert averaged(given) == pytest.approx({1: 0.8, 0: 0.4, 2: 0.25})
    assert list(averaged(given)) == [1, 0, 2]


def test_average_scores_weights_need_not_sum_to_one(given) -> None:
    assert averaged(given, dense=3.0, lexical=1.0) == pytest.approx({1: 0.7, 0: 0.6, 2: 0.125})


def test_average_scores_source_of_weight_zero_is_left_out(given) -> None:
    assert averaged(given, dense=1.0, lexical=0.0) == pytest.approx({0: 0.8, 1: 0.6})
    assert averaged(given, dense=0.0, lexical=0.0) == {}


def test_average_scores_one_source_alone_keeps_its_scores(state) -> None:
    assert averaged(state().with_ranking("dense", Ranking.ordered([4, 2], [0.9, -0.1]))) == pytest.approx(
        {4: 0.9, 2: 0}
    )
    assert averaged(state()) == {}
    assert averaged(state().with_ranking("dense", Ranking.empty())) == {}
