"""Reciprocal rank fusion, with the worked examples of seed 001."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench.errors import ConfigError
from ragbench.stages.fuse import Fuse
from ragbench.types import Query, QueryState, Ranking


def state(**rankings: Ranking) -> QueryState:
    made = QueryState(Query("q", "text"))
    for source, ranking in rankings.items():
        made = made.with_ranking(source, ranking)
    return made


def ranked(*chunks: int) -> Ranking:
    return Ranking.ordered(chunks, [1.0 / (place + 1) for place in range(len(chunks))])


def fuse(given_state: QueryState, **parameters) -> dict[int, float]:
    ranking = Fuse(**parameters).fuse(given_state)
    return dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))


def test_a_chunk_in_three_lists_gets_the_sum_of_its_reciprocal_ranks() -> None:
    # auth.md of seed 001: ranks 3, 5 and 2 -> 1/63 + 1/65 + 1/62 = 0.0473...
    scores = fuse(state(dense=ranked(7, 8, 1), lexical=ranked(7, 8, 9, 10, 1), graph=ranked(7, 1)))
    assert scores[1] == pytest.approx(1 / 63 + 1 / 65 + 1 / 62, rel=1e-6)


def test_a_chunk_in_two_lists() -> None:
    # deploy.md of seed 001: ranks 1 and 10 -> 1/61 + 1/70 = 0.0307
    scores = fuse(state(dense=ranked(2), graph=ranked(*range(10, 19), 2)))
    assert scores[2] == pytest.approx(0.0307, abs=5e-5)


def test_weights_multiply_the_terms() -> None:
    # seed 001: 1.2/63 + 0.8/65 = 0.0313
    scores = fuse(state(dense=ranked(7, 8, 1), lexical=ranked(7, 8, 9, 10, 1)), weights={"dense": 1.2, "lexical": 0.8})
    assert scores[1] == pytest.approx(1.2 / 63 + 0.8 / 65, rel=1e-6)
    assert scores[1] == pytest.approx(0.0313, abs=1e-4)


def test_the_states_own_weights_multiply_the_configured_ones() -> None:
    weighted = state(dense=ranked(1), lexical=ranked(2)).with_weight("lexical", 1.5)
    assert fuse(weighted, weights={"lexical": 2.0}) == pytest.approx({2: 3.0 / 61, 1: 1.0 / 61}, rel=1e-6)


def test_a_source_of_weight_zero_is_left_out() -> None:
    assert list(fuse(state(dense=ranked(1), lexical=ranked(2)), weights={"lexical": 0.0})) == [1]


def test_ties_go_to_the_lower_chunk_number() -> None:
    ranking = Fuse().fuse(state(dense=ranked(9), lexical=ranked(4)))
    assert ranking.chunks.tolist() == [4, 9]


def test_nothing_found_is_an_empty_ranking() -> None:
    assert len(Fuse().fuse(state(dense=Ranking.empty()))) == 0


@pytest.mark.parametrize(("parameters", "named"), [({"k": -1.0}, "k"), ({"weights": {"dense": -0.5}}, "weights.dense")])
def test_bad_parameters_are_named(parameters: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Fuse(**parameters)


@given(
    st.lists(st.lists(st.integers(0, 50), unique=True, max_size=20), min_size=1, max_size=4),
    st.floats(0, 100, allow_nan=False),
)
def test_agrees_with_a_plain_loop(lists: list[list[int]], k: float) -> None:
    given_state = state(**{f"s{n}": ranked(*chunks) for n, chunks in enumerate(lists)})
    expected: dict[int, float] = {}
    for chunks in lists:
        for rank, chunk in enumerate(chunks, start=1):
            expected[chunk] = expected.get(chunk, 0.0) + 1 / (k + rank)
    ranking = Fuse(k=k).fuse(given_state)
    assert dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True)) == pytest.approx(expected, rel=1e-5)
    assert np.all(np.diff(ranking.scores) <= 0)
