"""Dynamic weights: the formula of seed 001 over min-max scaled scores."""

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from ragbench.errors import ConfigError
from ragbench.stages.dynamic_weights import WeighByVariance, variance
from ragbench.types import Query, QueryState, Ranking


def ranking(*scores: float) -> Ranking:
    return Ranking.ordered(range(len(scores)), scores)


def state(**rankings: Ranking) -> QueryState:
    return QueryState(Query("q", "t"), rankings=rankings)


# One outstanding hit among 100: variance .01 * .99 = .0099, a tenth of the threshold, so the least factor counts.
FLAT = ranking(9.0, *[8.0] * 99)
SPREAD = ranking(0.9, 0.7, 0.5)  # scaled 1, .5, 0: variance (.25 + 0 + .25) / 3


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((0.9, 0.7, 0.5), 1 / 6),
        ((30.0, 20.0, 10.0), 1 / 6),  # the scale of the scores does not matter
        ((1.0, 0.0), 0.25),
        ((0.7, 0.7, 0.7), 0.0),
        ((0.7,), 0.0),
        ((), 0.0),
    ],
)
def test_variance_of_scaled_scores(scores: tuple[float, ...], expected: float) -> None:
    assert variance(ranking(*scores)) == pytest.approx(expected, abs=1e-6)
    assert variance(FLAT) == pytest.approx(0.0099, abs=1e-6)


def test_by_hand() -> None:
    # factors 1 and .5, so the weights 1 and 1 become 1 and .5; restoring their sum, 4/3 and 2/3
    (after,) = WeighByVariance()([state(dense=SPREAD, lexical=FLAT)], None)
    assert after.weights == pytest.approx({"dense": 4 / 3, "lexical": 2 / 3})


def test_between_the_bounds_the_factor_is_variance_by_threshold() -> None:
    # 1/6 / .25 = 2/3 against .5: 2/3 and 1/2 of 1 and 1, times 2 / (7/6)
    (after,) = WeighByVariance(variance_threshold=0.25)([state(dense=SPREAD, lexical=FLAT)], None)
    assert after.weights == pytest.approx({"dense": 8 / 7, "lexical": 6 / 7})


def test_the_sum_that_is_kept_is_that_of_the_weights_of_fusion() -> None:
    # configured 1.2 and .8: 1.2 * 1 + .8 * .5 = 1.6, so all times 2/1.6: 1.2 * 1.25 + .8 * .625 = 2
    stage = WeighByVariance(weights={"dense": 1.2, "lexical": 0.8})
    (after,) = stage([state(dense=SPREAD, lexical=FLAT)], None)
    assert after.weights == pytest.approx({"dense": 1.25, "lexical": 0.625})


def test_multiplies_the_weights_of_the_query_class() -> None:
    # lexical x1.5 before: 1 * 1 + 1.5 * .5 = 1.75, so all times 2.5/1.75
    (after,) = WeighByVariance()([state(dense=SPREAD, lexical=FLAT).with_weight("lexical", 1.5)], None)
    assert after.weights == pytest.approx({"dense": 10 / 7, "lexical": 1.5 * 0.5 * 10 / 7})


def test_other_sources_keep_theirs() -> None:
    (after,) = WeighByVariance()([state(dense=SPREAD, lexical=FLAT, code=FLAT)], None)
    assert "code" not in after.weights


def test_equally_decided_sources_keep_their_weights() -> None:
    (after,) = WeighByVariance()([state(dense=SPREAD, lexical=SPREAD)], None)
    assert after.weights == pytest.approx({"dense": 1.0, "lexical": 1.0})


def test_a_source_that_found_nothing_weighs_least_and_nothing_breaks() -> None:
    (after,) = WeighByVariance()([state(dense=SPREAD, lexical=ranking())], None)
    assert after.weights == pytest.approx({"dense": 4 / 3, "lexical": 2 / 3})
    (none,) = WeighByVariance(min_factor=0.0)([state(dense=ranking(), lexical=ranking())], None)
    assert none.weights == {}


@hypothesis_given(
    st.lists(st.floats(0, 100), max_size=8),
    st.lists(st.floats(0, 100), max_size=8),
    st.floats(0.1, 3),
    st.floats(0.1, 1),
)
def test_the_sum_of_weights_is_kept(dense: list[float], lexical: list[float], weight: float, least: float) -> None:
    given = state(dense=ranking(*sorted(dense)[::-1]), lexical=ranking(*sorted(lexical)[::-1]))
    (after,) = WeighByVariance(min_factor=least, weights={"dense": weight})([given], None)
    assert weight * after.weights["dense"] + after.weights["lexical"] == pytest.approx(weight + 1)


def test_the_default_is_that_of_the_seed() -> None:
    assert WeighByVariance().variance_threshold == 0.1


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"variance_threshold": 0.0}, r"variance_threshold must be above 0, got 0"),
        ({"variance_threshold": float("nan")}, r"variance_threshold"),
        ({"min_factor": 1.5}, r"min_factor must be between 0 and 1, got 1\.5"),
    ],
)
def test_bad_parameters_are_named(parameters: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        WeighByVariance(**parameters)
