"""Intervals of percentiles: queries count, not their repeats. How often they cover is in research/bench."""

from collections.abc import Mapping

import numpy as np
import pytest

from ragbench.base.minimums import FOR_P95_CI as FEWEST
from ragbench.evaluation.intervals import Samples, _places, summary, weighted_sum
from tests.naming import naming

CHANCE = np.random.default_rng(7)
TIMES = np.exp(CHANCE.normal(2, 0.5, 80))
QIDS = tuple(f"q{number}" for number in range(80))


def difference(base: Samples, arm: Samples) -> Mapping[str, float]:
    return weighted_sum(((arm, 1.0), (base, -1.0)))


def test_percentiles_by_hand() -> None:
    result = summary(Samples([str(number) for number in range(100)], np.arange(1.0, 101.0)))
    assert (result["p50"], result["p95"], result["p99"], result["mean"]) == (50.5, pytest.approx(95.05), 99.01, 50.5)
    assert result["p50_low"] < 50.5 < result["p50_high"]
    # Of 100 queries, fewer than 90 lie below p95 with probability .011, all with .006; at most 98 with .963, not .975.
    assert (result["p95_low"], result["p95_high"]) == (90, 100)


@pytest.mark.parametrize(("n", "low", "high"), [(72, 64, 72), (80, 72, 80), (110, 100, 109), (200, 184, 197)])
def test_intervals_places_of_bounds_are_those_of_the_binomial_distribution(n: int, low: int, high: int) -> None:
    """scipy's binomtest inverts the same distribution: the number below p95 that it does not refuse."""
    from scipy.stats import binom

    assert _places(n) == (low, high)
    assert binom.cdf(low - 1, n, 0.95) <= 0.025 < binom.cdf(low, n, 0.95)
    assert binom.sf(high - 1, n, 0.95) <= 0.025 < binom.sf(high - 2, n, 0.95)


def test_intervals_fewer_queries_than_bear_a_bound_have_none() -> None:
    few, enough = (summary(Samples(QIDS[:n], TIMES[:n])) for n in (FEWEST - 1, FEWEST))
    assert np.isnan([few["p95_low"], few["p95_high"]]).all()
    assert few["p50_low"] < few["p50"] < few["p50_high"]
    assert enough["p95_low"] < enough["p95"] < enough["p95_high"] == TIMES[:FEWEST].max()
    base, arm = (Samples(QIDS[: FEWEST - 1], TIMES[: FEWEST - 1] * times) for times in (1, 2))
    assert np.isnan(difference(base, arm)["p95_high"])


def test_intervals_repeats_of_queries_make_nothing_surer() -> None:
    once, often = summary(Samples(QIDS, TIMES)), summary(Samples(QIDS * 10, np.tile(TIMES, 10)))
    for level in ("p50", "p95"):
        widths = [item[f"{level}_high"] - item[f"{level}_low"] for item in (once, often)]
        assert widths[1] == pytest.approx(widths[0], rel=0.1)


def test_intervals_difference_of_arms_that_take_alike_is_nothing() -> None:
    base = Samples(QIDS, TIMES)
    assert set(difference(base, base).values()) == {0.0}


def test_intervals_difference_that_all_queries_share_is_sure_however_much_queries_differ() -> None:
    base, arm = Samples(QIDS, TIMES), Samples(QIDS, TIMES * 1.5)
    result, own = difference(base, arm), summary(base)
    for level in ("p50", "p95"):
        assert result[level] == pytest.approx(0.5 * own[level])
        assert result[f"{level}_low"] > 0
    for end in ("low", "high"):
        assert result[f"p50_{end}"] == pytest.approx(0.5 * own[f"p50_{end}"], rel=1e-6)
    assert result["p95_low"] < result["p95"] < result["p95_high"] <= 0.5 * TIMES.max()


def test_intervals_only_queries_that_both_arms_answered_count_whatever_their_order() -> None:
    base = Samples(("a", "b", "c", "a", "b", "c"), np.array([1.0, 2, 90, 1, 2, 90]))
    arm = Samples(("b", "d", "a"), np.array([5.0, 90, 4]))
    assert difference(base, arm)["p50"] == 4.5 - 1.5
    assert difference(arm, base)["p50"] == 1.5 - 4.5
    with pytest.raises(ValueError, check=naming("different queries")):
        difference(base, Samples(("d",), np.array([1.0])))


def test_intervals_one_query_or_a_time_too_short_to_tell_is_no_error() -> None:
    result = summary(Samples(("a", "a"), np.array([3.0, 3.0])))
    assert [value for name, value in result.items() if name not in ("p95_low", "p95_high")] == pytest.approx([3.0] * 6)
    assert summary(Samples(QIDS, np.zeros(80)))["p95_high"] == pytest.approx(0, abs=1e-5)


def test_intervals_same_samples_give_the_same_intervals() -> None:
    assert summary(Samples(QIDS, TIMES)) == summary(Samples(QIDS, TIMES))
    assert summary(Samples(QIDS, TIMES), seed=1) != summary(Samples(QIDS, TIMES), seed=2)
