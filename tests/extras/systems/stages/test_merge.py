"""Merging lexical and semantic hits by score, seed 002 "Semantic Mode"."""

import pytest

from ragbench.base.rankings import Ranking
from ragbench.extras.systems.stages.lexical_v3 import MergeScores
from ragbench.extras.systems.state import ExpandedQuery


@pytest.fixture
def index(handmade, page):
    return handmade([page("a", tags=["lamps"]), page("b"), page("c")])


def merged(state, index, stage=None, text="sea") -> dict[int, float]:
    given = state(text)
    given = given.with_ranking("lexical", Ranking.ordered([0, 1], [0.98, 0.5]))
    given = given.with_ranking("dense", Ranking.ordered([1, 2], [0.9, 0.6]))
    ranking = (stage or MergeScores())([given], index)[0].fused
    return dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))


def test_lexical_wins_where_both_found_a_chunk(state, index) -> None:
    scores = merged(state, index)
    assert scores == pytest.approx({0: 0.98, 2: 0.6, 1: 0.5})
    assert list(scores) == [0, 2, 1]


def test_merge_scores_tag_match_counts_a_tenth_more_and_the_best_score_is_one(state, index) -> None:
    # 0.98 * 1.1 = 1.078, by which all are divided
    assert merged(state, index, text="lamp") == pytest.approx({0: 1.0, 2: 0.6 / 1.078, 1: 0.5 / 1.078})
    assert merged(state, index, MergeScores(lexical_weight=0.5), "lamp") == pytest.approx({0: 0.539, 2: 0.6, 1: 0.25})


def test_merge_scores_weights(state, index) -> None:
    assert merged(state, index, MergeScores(dense_weight=0.5)) == pytest.approx({0: 0.98, 1: 0.5, 2: 0.3})
    assert merged(state, index, MergeScores(dense_weight=0)) == pytest.approx({0: 0.98, 1: 0.5})
    assert merged(state, index, MergeScores(lexical_weight=0)) == pytest.approx({1: 0.9, 2: 0.6})


def test_merge_scores_tag_in_the_query_leaves_lexical_hits_alone(state, index) -> None:
    assert list(merged(state, index, text="#sea")) == [0, 1]
    assert list(merged(state, index, MergeScores(lexical_for_tags=False), "#sea")) == [0, 2, 1]


def test_merge_scores_boosted_by_salient_terms(state, index) -> None:
    given = state("all about it").with_ranking("lexical", Ranking.ordered([0], [0.5]))
    given = given.with_fact(ExpandedQuery("all about it", ("lamps",)))
    assert MergeScores()([given], index)[0].fused.scores.tolist() == pytest.approx([0.55])


def test_merge_scores_equal_scores_keep_the_order_of_their_source(state, index) -> None:
    given = state("sea").with_ranking("lexical", Ranking.ordered([2, 1], [0.5, 0.5]))
    given = given.with_ranking("dense", Ranking.ordered([0], [0.5]))
    assert MergeScores()([given], index)[0].fused.chunks.tolist() == [2, 1, 0]


def test_merge_scores_nothing_found_and_cosines_below_zero(state, index) -> None:
    assert len(MergeScores()([state()], index)[0].fused) == 0
    given = state("sea").with_ranking("dense", Ranking.ordered([0], [-0.2]))
    assert MergeScores()([given], index)[0].fused == Ranking.ordered([0], [0.0])


def test_merge_scores_defaults_are_those_of_the_seed() -> None:
    stage = MergeScores()
    assert (stage.lexical_weight, stage.dense_weight, stage.tag_match_boost) == (1.0, 1.0, 1.1)
