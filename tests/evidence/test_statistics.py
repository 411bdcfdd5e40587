"""Families of paired comparisons: numbers worked by hand, other implementations, and what must hold of any."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.evidence import max_t, t_statistic
from ragbench.evidence.statistics import _BETS, _e_values, compare, compare_all, significant


def like_ndcg(generator, shape, ties=0.4):
    """Differences as nDCG has them: symmetric round 0, many of them ties."""
    size = generator.beta(0.7, 3.0, shape)
    return size * generator.choice([-1.0, 1.0], shape) * (generator.random(shape) >= ties)


def by_chance(rows, seed, draws):
    """What the p values and intervals of a family come from; what is detectable takes longer and is excluded."""
    n = np.full(len(rows), rows.shape[1])
    observed = t_statistic.statistic(n, *t_statistic.sums(rows), t_statistic.floor(rows, n))
    return n, observed, max_t.simulate(rows, np.ones(rows.shape, dtype=bool), seed, draws)


def p_value(differences, **options):
    return compare(differences, np.zeros(len(differences)), seed=1, **options).p_value


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ((1, 2, 3), 2 / 8),  # only +++ and --- have a mean as far from 0
        ((3, 1, -1), 6 / 8),  # sums 5 3 3 1 and their negatives: six reach 3
        ((1, -1), 1.0),  # every pattern reaches 0
        ((1, 1, 1, 0), 2 / 8),  # a tie has no sign to flip
        ((0, 0, 0), 1.0),
        ((0.1, 0.2, -0.3), 1.0),  # 0.1 + 0.2 - 0.3 is not 0 in floats
        ((-2,), 1.0),
    ],
)
def test_p_value_enumerated_by_hand(differences, expected):
    assert p_value(differences) == pytest.approx(expected, abs=1e-15)


def test_compare_largest_of_a_family_by_hand():
    """Two queries, two rows: flips of both, of one, of none. z of a row is largest where its signs agree."""
    rows = np.array([[1.0, 1.0], [1.0, -1.0]])
    compared = compare_all(rows, np.zeros_like(rows), seed=1)
    # Row 0 is at its largest for ++ and --, row 1 for +- and -+: some row is in all four patterns.
    assert [item.p_value for item in compared] == [1.0, 1.0]
    alone = compare_all(rows[:1], np.zeros((1, 2)), seed=1)
    assert alone[0].p_value == 2 / 4


def test_compare_sampled_p_value_counts_the_observed_pattern():
    assert p_value(np.ones(200), draws=99) == 1 / 100


def test_compare_enumeration_is_used_where_it_needs_no_more_patterns_than_sampling():
    differences = np.array([0.5, 0.3, 0.2])
    assert p_value(differences, draws=7) == 0.25
    assert p_value(differences, draws=6) * 7 == pytest.approx(round(p_value(differences, draws=6) * 7))


@pytest.mark.parametrize("n", [4, 9, 12])
def test_compare_exact_p_value_of_symmetric_differences_is_that_of_scipy(n):
    """Without skew the statistic orders patterns as the mean does."""
    from scipy.stats import permutation_test

    half = np.random.default_rng(n).normal(0.0, 1.0, n)
    differences = np.abs(half) * np.where(np.arange(n) % 3, 1, -1)
    reference = permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    signs = next(max_t._sign_patterns(n, 1, 10_000, 1))
    means = np.abs(np.append(differences @ signs, differences.sum()))
    by_hand = (means >= abs(differences.sum()) - 1e-12).mean()
    assert by_hand == pytest.approx(reference.pvalue, abs=1e-12)


@pytest.mark.slow
def test_compare_sampled_p_value_agrees_with_scipy_and_ranx():
    """Where differences are symmetric: within six standard errors of two estimates of 50,000 draws, and 0.01."""
    from ranx.statistical_tests import fisher_randomization_test
    from scipy.stats import permutation_test

    generator, draws = np.random.default_rng(5), 50_000
    baseline = generator.random(80)
    candidate = baseline + like_ndcg(generator, 80) + 0.03
    rows = (candidate - baseline)[np.newaxis]
    _, observed, largest = by_chance(rows, 3, draws)
    (ours,) = max_t.tail_p(np.abs(observed), largest.sign_flip)
    scipys = permutation_test(
        (candidate - baseline,), np.mean, permutation_type="samples", n_resamples=draws, batch=5_000, rng=4
    ).pvalue
    ranxs, _ = fisher_randomization_test(baseline, candidate, draws, 0.05, 6)
    tolerance = 0.01 + 6 * math.sqrt(2 * ours * (1 - ours) / draws)
    assert 0.02 < ours < 0.98
    assert ours == pytest.approx(scipys, abs=tolerance)
    assert ours == pytest.approx(ranxs, abs=tolerance)


def test_statistic_is_the_t_of_scipy():
    from scipy.stats import ttest_1samp

    values = np.array([[-0.3, -0.1, 0.1, 0.3, 0.5, 0.9, -0.5, 0.02]])
    values = np.concatenate([values, -values], axis=1) + 0.07  # symmetric round its mean
    n = np.array([16])
    result = t_statistic.statistic(n, *t_statistic.sums(values), np.array([0.0]))
    # scipy divides by n - 1 in the variance, the statistic by n and takes root n - 1: the same.
    assert result[0] == pytest.approx(ttest_1samp(values[0], 0.0).statistic, rel=1e-12)


def test_statistic_by_hand():
    """1, 1, 4: mean 2, variance over n 2, so z = sqrt(2) * 2 / sqrt(2) = 2; under a floor of 8 it is half of that."""
    values, n = np.array([[1.0, 1.0, 4.0]]), np.array([3])
    mean, root = t_statistic._moments(n, *t_statistic.sums(values), np.array([0.0]))
    assert (mean[0], root[0]) == (2.0, pytest.approx(math.sqrt(2)))
    assert t_statistic.statistic(n, *t_statistic.sums(values), np.array([0.0]))[0] == pytest.approx(2.0)
    assert t_statistic.statistic(n, *t_statistic.sums(values), np.array([8.0]))[0] == pytest.approx(1.0)


def test_bounds_solve_the_statistic():
    """At each end of the interval the statistic is the critical value."""
    values = np.random.default_rng(3).exponential(0.2, (4, 30)) - 0.1
    n = np.full(4, 30)
    low, high = t_statistic.bounds(values, n, 2.5, 2.0)
    least = t_statistic.floor(values, n)
    for end, z in ((low, 2.5), (high, -2.0)):
        # The moments about an end: only the mean moves.
        moved = values - end[:, np.newaxis]
        assert t_statistic.statistic(n, *t_statistic.sums(moved), least) == pytest.approx(np.full(4, z), rel=1e-9)
    assert (high - values.mean(axis=1)) / 2.0 == pytest.approx((values.mean(axis=1) - low) / 2.5)


def test_compare_rows_that_lose_rarely_reach_further_down_than_up():
    """Samples without the rare losses have a high mean and a small spread: the bootstrap's z is large there."""
    rows = np.full((1, 200), 0.05)
    rows[0, :8] = -0.5
    result = compare_all(rows + 0.5, np.full((1, 200), 0.5), seed=1)[0]
    _, _, largest = by_chance(rows, 1, 10_000)
    above, below = max_t.critical(largest, 0.05, 200, 1)
    assert above > below
    assert result.difference - result.ci_low > result.ci_high - result.difference
    assert result.difference - result.at_least > (result.difference - result.ci_low) * 0.6


def test_compare_row_of_which_little_changed_has_the_variance_of_sixteen_typical_changes():
    differences = np.zeros((2, 40))
    differences[0, 0], differences[1, :20] = 0.1, 0.2
    typical = (0.01 + 20 * 0.04) / 21
    assert t_statistic.floor(differences, np.array([40, 40])) == pytest.approx([16 * typical / 40] * 2)
    assert t_statistic.floor(differences[:, :10], np.array([10, 10])) == pytest.approx([(0.01 + 10 * 0.04) / 11] * 2)


@given(st.integers(0, 1000), st.integers(8, 60), st.floats(-0.2, 0.2))
@settings(max_examples=40, deadline=None)
def test_compare_interval_leaves_0_out_exactly_when_p_is_at_most_5_percent(seed, n, effect):
    generator = np.random.default_rng(seed)
    differences = like_ndcg(generator, (3, n)) + effect * (generator.random((3, n)) < 0.5)
    for item in compare_all(differences, np.zeros((3, n)), seed=1, draws=400):
        assert (item.ci_low > 0 or item.ci_high < 0) == (item.p_value <= 0.05)
        assert item.ci_low <= item.narrow_low <= item.difference <= item.narrow_high <= item.ci_high


def test_compare_interval_covers_the_truth_as_often_as_it_says():
    """Of 2,000 intervals of single comparisons with 80 queries; a standard error of half a point."""
    generator, truth, covered = np.random.default_rng(9), 0.05, []
    for seed in range(2_000):
        rows = like_ndcg(generator, (1, 80)) + truth
        n, _, largest = by_chance(rows, seed, 299)
        low, high = t_statistic.bounds(rows, n, *max_t.critical(largest, 0.05, 80, 1))
        covered.append(low[0] <= truth <= high[0])
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.parametrize("shape", ["symmetric", "skewed"])
def test_compare_family_without_effects_finds_one_in_five_percent_of_cases(shape):
    """1,000 families of 12 rows and 50 queries; a standard error of 0.7 points."""
    generator, significant = np.random.default_rng(10), []
    for seed in range(1_000):
        shared = generator.normal(0.0, 0.1, 50)
        own = generator.exponential(0.15, (12, 50)) - 0.15 if shape == "skewed" else like_ndcg(generator, (12, 50))
        _, observed, largest = by_chance(shared + own, seed, 199)
        significant.append(max_t.p_values(observed, largest).min() <= 0.05)
    assert 0.025 <= np.mean(significant) <= 0.07


def test_compare_comparison_describes_the_pairs():
    result = compare([0.9, 0.5, 0.1 + 0.2, 0.0], [0.5, 0.5, 0.3, 0.2], seed=1)
    assert (result.n, result.wins, result.ties, result.losses) == (4, 1, 2, 1)
    assert (result.mean_candidate, result.mean_baseline) == (pytest.approx(0.425), pytest.approx(0.375))
    assert result.difference == pytest.approx(0.05)
    assert result.sd == pytest.approx(np.std([0.4, 0.0, 0.0, -0.2], ddof=1))
    assert result.ci_low < result.difference < result.ci_high
    assert result.p_value == 1.0  # +-.4 +-.2: every pattern reaches .2


def test_compare_equal_arms_and_constant_differences():
    equal = compare([0.3] * 30, [0.3] * 30, seed=1)
    assert (equal.difference, equal.p_value, equal.ties) == (0.0, 1.0, 30)
    assert (equal.ci_low, equal.ci_high) == (pytest.approx(-2 / 32), pytest.approx(2 / 32))  # two unseen queries
    assert equal.narrow_high == pytest.approx(1 - 0.05 ** (1 / 30))  # 9.5% of all queries may be of an unseen kind
    assert equal.at_least == pytest.approx(-1 / 31)
    constant = compare(np.full(30, 0.4), np.full(30, 0.3), seed=1)
    assert constant.ci_low < 0.1 < constant.ci_high
    # All of its width is the floor: 0.1 * root(16 / 30) / root(29) = 0.0136, times the critical 1.9.
    # That is 0.074; two more queries that lose everything leave (3 - 2) / 32.
    assert constant.ci_low == pytest.approx(1 / 32)
    assert constant.p_value == 1 / 10_001


def test_compare_gain_that_two_lost_queries_would_reverse_is_not_significant():
    gains = [0.06] * 30  # a sum of 1.8
    small = compare(np.full(30, 0.3) + gains, np.full(30, 0.3), seed=1)
    assert small.p_value < 0.001 and small.ci_low < 0 and not small.robust and not small.significant
    assert compare(np.full(40, 0.36), np.full(40, 0.3), seed=1).significant  # a sum of 2.4


def test_compare_below_thirty_queries_a_gain_needs_a_bound_for_every_distribution():
    for queries, expected in ((29, False), (30, True)):  # e = 5.3 for 29 of 0.1, below 40
        few = compare(np.full(queries, 0.5), np.full(queries, 0.4), seed=1)
        assert few.p_value < 0.001 and few.significant == expected
    assert compare(np.full(20, 0.7), np.full(20, 0.3), seed=1).significant  # e = 126
    assert compare(np.full(20, 0.3), np.full(20, 0.5), seed=1).significant  # a loss needs none


def test_compare_e_values_by_hand():
    differences = np.array([[0.5, -0.2], [0.0, 0.0]])
    assert _e_values(differences).tolist() == [
        pytest.approx(np.mean([(1 + b * 0.5) * (1 - b * 0.2) for b in _BETS])),
        pytest.approx(1.0),
    ]


def test_compare_one_query_is_compared_without_a_claim():
    result = compare([0.7], [0.2], seed=1)
    assert (result.difference, result.p_value) == (0.5, 1.0)
    assert all(map(math.isnan, (result.sd, result.mde, result.ci_low, result.ci_high)))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=40))
@settings(max_examples=30, deadline=None)
def test_compare_swapping_the_arms_mirrors_the_comparison(pairs):
    ours, theirs = np.array(pairs).T
    there, back = compare(ours, theirs, seed=1, draws=200), compare(theirs, ours, seed=1, draws=200)
    assert back.difference == -there.difference
    assert back.p_value == there.p_value
    assert (back.wins, back.losses) == (there.losses, there.wins)
    assert (back.ci_low, back.ci_high) == pytest.approx((-there.ci_high, -there.ci_low), abs=1e-9)


def test_compare_order_of_the_rows_and_a_second_time_change_nothing():
    generator = np.random.default_rng(12)
    baselines = generator.random((7, 90))
    candidates = baselines + like_ndcg(generator, (7, 90))
    candidates[3] = baselines[3]
    together = compare_all(candidates, baselines, seed=4)
    assert repr(together) == repr(compare_all(candidates, baselines, seed=4))  # NaN is not equal to itself
    assert repr(together[::-1]) == repr(compare_all(candidates[::-1], baselines[::-1], seed=4))
    assert together[0].p_value >= compare(candidates[0], baselines[0], seed=4).p_value
    assert compare_all(candidates, baselines, seed=5)[0].ci_low != together[0].ci_low


def test_compare_query_without_a_value_in_a_row_takes_no_part_in_it():
    generator = np.random.default_rng(2)
    candidate = generator.random((2, 30))
    candidate[1, :10] = np.nan
    baseline = np.where(np.isnan(candidate), np.nan, 0.4)
    result = compare_all(candidate, baseline, seed=1, draws=500)
    assert [item.n for item in result] == [30, 20]
    assert result[1].difference == pytest.approx(candidate[1, 10:].mean() - 0.4)
    assert result[1].sd == pytest.approx(candidate[1, 10:].std(ddof=1))


def test_compare_more_queries_than_one_block_of_patterns_holds():
    generator = np.random.default_rng(13)
    differences = generator.normal(0.01, 0.2, 9_000)
    result = compare(differences, np.zeros(9_000), seed=1, draws=1_000)
    half = 1.96 * differences.std(ddof=1) / math.sqrt(9_000)
    assert result.ci_high - result.ci_low == pytest.approx(2 * half, rel=0.1)


@pytest.mark.parametrize(
    ("candidate", "baseline", "options", "error", "message"),
    [
        ([1.0, 2.0], [1.0], {}, BenchmarkError, "cannot be paired"),
        ([], [], {}, BenchmarkError, "at least one"),
        ([1.0, math.nan], [1.0, 2.0], {}, BenchmarkError, "not a finite number"),
        ([1.0, math.inf], [1.0, 2.0], {}, BenchmarkError, "not a finite number"),
        ([math.nan], [math.nan], {}, BenchmarkError, "no query with a value"),
        ([1.0], [1.0], {"draws": 0}, ConfigError, "draws must be at least 1, got 0"),
        ([1.0], [1.0], {"confidence": 95}, ConfigError, "above 0.5 and below 1, got 95"),
    ],
)
def test_compare_names_incomparable_sources(candidate, baseline, options, error, message):
    with pytest.raises(error, match=message):
        compare(candidate, baseline, seed=1, **options)


def test_compare_intervals_of_measures_end_at_one() -> None:
    few = compare([1.0, 0.0, 0.9], [0.1, 0.9, 0.0], seed=1)
    assert (few.ci_low, few.ci_high) == (-1.0, 1.0)
    times = compare([10.0, 1.0, 9.0], [1.0, 9.0, 0.0], seed=1)
    assert times.ci_low < -1 < 1 < times.ci_high


@pytest.mark.parametrize("scale", [0.8, 1.0, 4.0])  # the last beyond [0, 1], where no unseen query is bounded
def test_significant_is_that_of_the_comparisons(scale):
    rng = np.random.default_rng(3)
    old = scale * rng.uniform(0.0, 1.0, (1, 40)).repeat(4, axis=0)
    new = np.clip(old + scale * np.array([[0.0], [-0.1], [-0.3], [0.2]]) * rng.uniform(0.0, 1.0, (4, 40)), 0, scale)
    expected = [item.significant for item in compare_all(new, old, seed=0, confidence=0.9)]
    assert 0 < sum(expected) < 4
    assert significant(new, old, seed=0, confidence=0.9).tolist() == expected
