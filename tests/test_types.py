"""Rankings and states."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Query


def test_ranking_sorts_by_score_then_chunk_number() -> None:
    ranking = Ranking.of([5, 1, 9, 3], [0.5, 0.7, 0.7, 0.5])
    assert ranking.chunks.tolist() == [1, 9, 3, 5]


def test_ranking_keeps_the_lower_number_of_ties() -> None:
    assert Ranking.of([9, 4, 7], [1.0, 1.0, 1.0], depth=2).chunks.tolist() == [4, 7]


@given(st.dictionaries(st.integers(0, 1000), st.floats(-1e3, 1e3, width=32)), st.randoms())
def test_ranking_ignores_the_order_given(scores: dict[int, float], chance) -> None:
    items = list(scores.items())
    ranking = Ranking.of([c for c, _ in items], [s for _, s in items])
    chance.shuffle(items)
    assert Ranking.of([c for c, _ in items], [s for _, s in items]) == ranking
    assert np.all(np.diff(ranking.scores) <= 0)


def test_ranking_is_read_only() -> None:
    ranking = Ranking.of([1, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match="read-only"):
        ranking.chunks[0] = 7


def test_query_state_is_immutable() -> None:
    state = QueryState(Query("q1", "words"))
    later = state.with_text("dense", "more words").with_weight("dense", 1.5).with_weight("dense", 2.0).with_note("n")
    assert (state.text_for("dense"), state.weights, state.notes) == ("words", {}, ())
    assert (later.text_for("dense"), later.text_for("lexical")) == ("more words", "words")
    assert later.weights == {"dense": 3.0}


def test_filter_counts_what_it_leaves() -> None:
    state = QueryState(Query("q", "t"), fused=Ranking.ordered([1, 2], [0.9, 0.1]))
    after = state.filtered("threshold", state.fused.keep(np.array([True, False])))
    assert after.counts == (("original_count", 2), ("threshold", 1))
    assert after.fused.chunks.tolist() == [1]
