"""Dynamic weights: the formula of seed 001 over how decided a source is."""

import pytest
from hypothesis import given as hypothesis_given, strategies as st

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Query
from ragbench.search.stages.fuse import WeighByDecisiveness, _decisiveness


def ranking(*scores: float) -> Ranking:
    return Ranking.ordered(range(len(scores)), scores)


def state(**rankings: Ranking) -> QueryState:
    return QueryState(Query("q", "t"), rankings=rankings)


DECISIVE = ranking(20.0, 3.0, 2.8, 2.5, 2.2, 2.0)  # 17 of 18 before the second hit
MUDDY = ranking(9.0, 8.9, 8.8, 8.7, 8.6, 8.5)  # .1 of .5


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((20.0, 3.0, 2.8, 2.5, 2.2, 2.0), 17 / 18),
        ((2.0, 0.3, 0.28, 0.25, 0.22, 0.2), 17 / 18),  # neither the scale of the scores matters
        ((120.0, 103.0, 102.8, 102.5, 102.2, 102.0), 17 / 18),  # nor what is added to all
        ((9.0, 8.9, 8.8, 8.7, 8.6, 8.5), 0.2),
        ((1.0, 0.0), 1.0),
        ((0.7, 0.7, 0.7), 0.0),
        ((0.7,), 0.0),
        ((), 0.0),
        (tuple(range(40, 0, -1)), 4 / 39),  # a tenth of forty are four
    ],
)
def test_decisiveness(scores: tuple[float, ...], expected: float) -> None:
    assert _decisiveness(ranking(*scores)) == pytest.approx(expected, abs=1e-5)


def test_decisiveness_of_a_clear_list_is_higher() -> None:
    for dense, lexical in ((DECISIVE, MUDDY), (MUDDY, DECISIVE)):
        (after,) = WeighByDecisiveness()([state(dense=dense, lexical=lexical)], None)
        assert (after.weights["dense"] > 1 > after.weights["lexical"]) == (dense is DECISIVE)


def test_decisiveness_of_one_outstanding_hit() -> None:
    # its variance, scaled from 0 to 1, is .01 * .99: the least of any list, which is why variance is not what counts
    assert _decisiveness(ranking(9.0, *[8.0] * 99)) == 1.0


def test_decisiveness_by_hand() -> None:
    # factors 1 and .5, so the weights 1 and 1 become 1 and .5; restoring their sum, 4/3 and 2/3
    (after,) = WeighByDecisiveness()([state(dense=DECISIVE, lexical=MUDDY)], None)
    assert after.weights == pytest.approx({"dense": 4 / 3, "lexical": 2 / 3})


def test_between_the_bounds_the_factor_is_decisiveness_by_threshold() -> None:
    # .2 / .5 = .4, so 1 and .4, times 2 / 1.4
    (after,) = WeighByDecisiveness(min_factor=0.25)([state(dense=DECISIVE, lexical=MUDDY)], None)
    assert after.weights == pytest.approx({"dense": 10 / 7, "lexical": 4 / 7}, rel=1e-5)


def test_decisiveness_variance_of_seed_001_by_hand() -> None:
    """The factor is max(0.5, variance / 0.1), at most 1: of 0.9 and 0.1 the variance is 0.16, of 0.5 and 0.1 0.04."""
    stage = WeighByDecisiveness(measure="variance", threshold=0.1)
    (after,) = stage([state(dense=ranking(0.9, 0.1), lexical=ranking(0.5, 0.1))], None)
    assert after.weights == pytest.approx({"dense": 4 / 3, "lexical": 2 / 3})  # factors 1 and 0.5, the sum kept
    (after,) = stage([state(dense=ranking(0.9, 0.1), lexical=ranking(0.6, 0.1))], None)
    assert after.weights == pytest.approx({"dense": 2 / 1.625, "lexical": 1.25 / 1.625})  # 0.0625 / 0.1


def test_decisiveness_keeps_the_sum_of_fusion_weights() -> None:
    # configured 1.2 and .8: 1.2 * 1 + .8 * .5 = 1.6, so all times 2/1.6: 1.2 * 1.25 + .8 * .625 = 2
    stage = WeighByDecisiveness(weights={"dense": 1.2, "lexical": 0.8})
    (after,) = stage([state(dense=DECISIVE, lexical=MUDDY)], None)
    assert after.weights == pytest.approx({"dense": 1.25, "lexical": 0.625})


def test_decisiveness_multiplies_the_weights_of_the_query_class() -> None:
    # lexical x1.5 before: 1 * 1 + 1.5 * .5 = 1.75, so all times 2.5/1.75
    (after,) = WeighByDecisiveness()([state(dense=DECISIVE, lexical=MUDDY).with_weight("lexical", 1.5)], None)
    assert after.weights == pytest.approx({"dense": 10 / 7, "lexical": 1.5 * 0.5 * 10 / 7})


def test_decisiveness_leaves_other_sources() -> None:
    (after,) = WeighByDecisiveness()([state(dense=DECISIVE, lexical=MUDDY, code=MUDDY)], None)
    assert "code" not in after.weights


def test_decisiveness_keeps_weights_of_equal_sources() -> None:
    (after,) = WeighByDecisiveness()([state(dense=DECISIVE, lexical=DECISIVE)], None)
    assert after.weights == pytest.approx({"dense": 1.0, "lexical": 1.0})


def test_decisiveness_of_a_source_without_hits_is_lowest() -> None:
    (after,) = WeighByDecisiveness()([state(dense=DECISIVE, lexical=ranking())], None)
    assert after.weights == pytest.approx({"dense": 4 / 3, "lexical": 2 / 3})
    (none,) = WeighByDecisiveness(min_factor=0.0)([state(dense=ranking(), lexical=ranking())], None)
    assert none.weights == {}


@hypothesis_given(
    st.lists(st.floats(0, 100), max_size=8),
    st.lists(st.floats(0, 100), max_size=8),
    st.floats(0.1, 3),
    st.floats(0.1, 1),
)
def test_decisiveness_sum_of_weights_is_kept(
    dense: list[float], lexical: list[float], weight: float, least: float
) -> None:
    given = state(dense=ranking(*sorted(dense)[::-1]), lexical=ranking(*sorted(lexical)[::-1]))
    (after,) = WeighByDecisiveness(min_factor=least, weights={"dense": weight})([given], None)
    assert weight * after.weights["dense"] + after.weights["lexical"] == pytest.approx(weight + 1)


def test_decisiveness_least_factor_is_that_of_the_seed() -> None:
    assert WeighByDecisiveness().min_factor == 0.5
