import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench.comparison.statistics import (
    align,
    bootstrap_intervals,
    compare,
    compare_all,
    holm,
    minimum_detectable_effect,
    queries_needed,
    randomisation_test,
)
from ragbench.errors import BenchmarkError, ConfigError


def like_ndcg(generator, shape, ties=0.4):
    """Differences as nDCG has them: symmetric round 0, many of them ties."""
    size = generator.beta(0.7, 3.0, shape)
    return size * generator.choice([-1.0, 1.0], shape) * (generator.random(shape) >= ties)


def p_value(differences, **options):
    return float(randomisation_test(np.array([differences], dtype=float), seed=1, **options)[0])


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ((1, 2, 3), 2 / 8),  # only +++ and --- reach 6
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


def test_sampled_p_value_counts_the_observed_pattern():
    assert p_value(np.ones(200), permutations=99) == 1 / 100


def test_enumeration_is_used_where_it_needs_no_more_patterns_than_sampling():
    differences = np.array([0.5, 0.3, 0.2])
    assert p_value(differences, permutations=7) == 0.25
    assert p_value(differences, permutations=6) * 7 == pytest.approx(round(p_value(differences, permutations=6) * 7))


@pytest.mark.parametrize("n", [4, 9, 12])
def test_exact_p_value_is_that_of_scipy(n):
    from scipy.stats import permutation_test

    differences = np.random.default_rng(n).normal(0.3, 1.0, n)
    reference = permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    assert p_value(differences) == pytest.approx(reference.pvalue, abs=1e-12)


def test_sampled_p_value_agrees_with_scipy_and_ranx():
    """Within six standard errors of two Monte Carlo estimates of 50,000 draws."""
    from ranx.statistical_tests import fisher_randomization_test
    from scipy.stats import permutation_test

    generator, draws = np.random.default_rng(5), 50_000
    baseline = generator.random(80)
    candidate = baseline + like_ndcg(generator, 80) + 0.03
    ours = compare(candidate, baseline, seed=3, permutations=draws, resamples=10).p_value
    scipys = permutation_test(
        (candidate - baseline,), np.mean, permutation_type="samples", n_resamples=draws, batch=5_000, rng=4
    ).pvalue
    ranxs, _ = fisher_randomization_test(baseline, candidate, draws, 0.05, 6)
    tolerance = 6 * math.sqrt(2 * ours * (1 - ours) / draws)
    assert 0.02 < ours < 0.98
    assert ours == pytest.approx(scipys, abs=tolerance)
    assert ours == pytest.approx(ranxs, abs=tolerance)


@pytest.mark.parametrize(("n", "ties", "expanded"), [(50, 0.0, 0.958), (50, 0.6, 0.958), (8, 0.0, 0.989)])
def test_interval_is_that_of_scipys_percentile_bootstrap(n, ties, expanded):
    """Within 3% of the interval's width, which 20,000 resamples on each side allow, at the expanded level."""
    from scipy.stats import bootstrap, norm, t

    generator = np.random.default_rng(8)
    differences = generator.exponential(0.2, n) * (generator.random(n) >= ties)
    (low,), (high,) = bootstrap_intervals(differences[np.newaxis], seed=1, resamples=20_000)
    level = 1 - 2 * norm.cdf(math.sqrt(n / (n - 1)) * t.ppf(0.025, n - 1))
    assert level == pytest.approx(expanded, abs=0.0005)
    reference = bootstrap(
        (differences,), np.mean, n_resamples=20_000, confidence_level=level, method="percentile", rng=2
    ).confidence_interval
    assert low == pytest.approx(reference.low, abs=0.03 * (high - low))
    assert high == pytest.approx(reference.high, abs=0.03 * (high - low))
    assert high - differences.mean() > differences.mean() - low  # skewed like the data


def test_interval_covers_the_truth_as_often_as_it_says():
    """Of 4,000 intervals 94.9% do, with a standard error of 0.3 points; of scipy's BCa intervals 93.1%."""
    generator, truth, covered = np.random.default_rng(9), 0.05, []
    for seed in range(20):
        differences = like_ndcg(generator, (200, 80)) + truth
        lows, highs = bootstrap_intervals(differences, seed=seed, resamples=3_000)
        covered.append((lows <= truth) & (truth <= highs))
    assert 0.93 <= np.mean(covered) <= 0.96


def null_p_values(simulations=10_000, block=500, n=50):
    generator = np.random.default_rng(10)
    return np.concatenate(
        [
            randomisation_test(like_ndcg(generator, (block, n)), seed=seed, permutations=999)
            for seed in range(simulations // block)
        ]
    )


def test_false_positives_under_the_null():
    """10,000 simulations: a standard error of 0.2 points, so 4 to 6% is nine of them wide."""
    p_values = null_p_values()
    assert 0.04 <= (p_values <= 0.05).mean() <= 0.06
    assert 0.007 <= (p_values <= 0.01).mean() <= 0.013
    families = p_values.reshape(-1, 10)
    assert np.mean([holm(family).min() <= 0.05 for family in families]) <= 0.07  # of 1,000 families, se 0.7 points


@pytest.mark.parametrize(
    ("n", "ties", "low", "high"), [(60, 0.0, 0.78, 0.82), (150, 0.0, 0.78, 0.82), (80, 0.6, 0.75, 0.85)]
)
def test_a_planted_effect_of_the_minimum_detectable_size_is_found_in_four_of_five(n, ties, low, high):
    generator = np.random.default_rng(11)
    noise = generator.normal(0.0, 0.15, (5_000, n)) * (generator.random((5_000, n)) >= ties)
    effect = minimum_detectable_effect(0.15 * math.sqrt(1 - ties), n)
    found = [
        randomisation_test(noise[start : start + 500] + effect, seed=start, permutations=1_999) <= 0.05
        for start in range(0, 5_000, 500)
    ]
    assert low <= np.mean(found) <= high


@pytest.mark.parametrize(("n", "family"), [(5, 1), (50, 1), (200, 13), (5_000, 1)])
def test_minimum_detectable_effect_is_that_of_statsmodels(n, family):
    """statsmodels gives it a power of 80% within 1e-6; it also counts significance in the wrong direction."""
    from statsmodels.stats.power import TTestPower

    effect = minimum_detectable_effect(2.0, n, family=family)
    assert TTestPower().power(effect / 2.0, n, 0.05 / family) == pytest.approx(0.8, abs=1e-6)


def test_minimum_detectable_effect_by_the_textbook():
    assert minimum_detectable_effect(0.2, 100_000) == pytest.approx(
        (1.959964 + 0.841621) * 0.2 / math.sqrt(100_000), rel=1e-4
    )
    assert minimum_detectable_effect(0.2, 1) == math.inf
    assert minimum_detectable_effect(1.0, 2, family=91) > minimum_detectable_effect(1.0, 3, family=91)


@pytest.mark.parametrize(("effect", "sd"), [(0.02, 0.15), (0.5, 0.1), (0.1, 0.1)])
def test_queries_needed_is_the_first_number_that_finds_the_effect(effect, sd):
    n = queries_needed(effect, sd)
    assert minimum_detectable_effect(sd, n) <= effect
    assert n == 2 or minimum_detectable_effect(sd, n - 1) > effect


def test_queries_needed_refuses_no_effect():
    with pytest.raises(ConfigError, match="greater than 0, got 0"):
        queries_needed(0.0, 0.1)


def test_holm_by_hand():
    # 4 x 0.01, 3 x 0.013, 2 x 0.03, 1 x 0.04, never falling
    assert holm([0.03, 0.01, 0.04, 0.013]).tolist() == pytest.approx([0.06, 0.04, 0.06, 0.04])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


@pytest.mark.parametrize("size", [1, 2, 13, 91])
def test_holm_is_that_of_statsmodels(size):
    from statsmodels.stats.multitest import multipletests

    p_values = np.random.default_rng(size).random(size).round(2) ** 3  # rounded: with ties
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1], abs=1e-12)


def test_comparison_describes_the_pairs():
    result = compare([0.9, 0.5, 0.1 + 0.2, 0.0], [0.5, 0.5, 0.3, 0.2], seed=1)
    assert (result.n, result.wins, result.ties, result.losses) == (4, 1, 2, 1)
    assert (result.mean_candidate, result.mean_baseline) == (pytest.approx(0.425), pytest.approx(0.375))
    assert result.difference == pytest.approx(0.05)
    assert result.sd == pytest.approx(np.std([0.4, 0.0, 0.0, -0.2], ddof=1))
    assert result.ci_low < result.difference < result.ci_high
    assert result.p_value == 1.0  # +-.4 +-.2: every pattern reaches .2


def test_equal_arms_and_constant_differences():
    equal = compare([0.3] * 30, [0.3] * 30, seed=1)
    assert (equal.difference, equal.ci_low, equal.ci_high, equal.p_value, equal.ties) == (0.0, 0.0, 0.0, 1.0, 30)
    constant = compare(np.full(30, 0.4), np.full(30, 0.3), seed=1)
    assert (constant.ci_low, constant.ci_high) == (0.1, 0.1)
    assert constant.p_value == 1 / 10_001


def test_one_query_is_compared_without_a_claim():
    result = compare([0.7], [0.2], seed=1)
    assert (result.difference, result.p_value, result.mde) == (0.5, 1.0, math.inf)
    assert math.isnan(result.sd)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40))
@settings(max_examples=30, deadline=None)
def test_swapping_the_arms_mirrors_the_comparison(pairs):
    ours, theirs = np.array(pairs).T
    there = compare(ours, theirs, seed=1, resamples=200, permutations=200)
    back = compare(theirs, ours, seed=1, resamples=200, permutations=200)
    assert back.difference == -there.difference
    assert back.p_value == there.p_value
    assert (back.wins, back.losses) == (there.losses, there.wins)
    assert (back.ci_low, back.ci_high) == pytest.approx((-there.ci_high, -there.ci_low), abs=1e-9)


def test_a_row_of_many_is_compared_as_if_alone_and_repeatably():
    generator = np.random.default_rng(12)
    baselines = generator.random((7, 90))
    candidates = baselines + like_ndcg(generator, (7, 90))
    candidates[3] = baselines[3]
    together = compare_all(candidates, baselines, seed=4)
    assert together == compare_all(candidates, baselines, seed=4)
    for row in (0, 3, 6):
        assert together[row] == compare(candidates[row], baselines[row], seed=4, family=7)
    assert together[0].mde == pytest.approx(minimum_detectable_effect(together[0].sd, 90, family=7), abs=1e-11)
    assert together[0].mde > compare(candidates[0], baselines[0], seed=4).mde
    other = compare(candidates[0], baselines[0], seed=5, family=7)
    assert other.ci_low != together[0].ci_low
    assert other.p_value != together[0].p_value


def test_more_queries_than_one_block_of_draws_holds():
    generator = np.random.default_rng(13)
    differences = generator.normal(0.01, 0.2, 9_000)
    result = compare(differences, np.zeros(9_000), seed=1, resamples=1_000, permutations=1_000)
    half = 1.96 * differences.std(ddof=1) / math.sqrt(9_000)
    assert result.ci_high - result.ci_low == pytest.approx(2 * half, rel=0.1)


@pytest.mark.parametrize(
    ("candidate", "baseline", "options", "error", "message"),
    [
        ([1.0, 2.0], [1.0], {}, BenchmarkError, "cannot be paired"),
        ([], [], {}, BenchmarkError, "at least one"),
        ([1.0, math.nan], [1.0, 2.0], {}, BenchmarkError, "not a finite number"),
        ([1.0], [1.0], {"resamples": 0}, ConfigError, "resamples must be at least 1, got 0"),
        ([1.0], [1.0], {"permutations": 0}, ConfigError, "permutations must be at least 1, got 0"),
        ([1.0], [1.0], {"confidence": 95}, ConfigError, "between 0 and 1, got 95"),
    ],
)
def test_what_cannot_be_compared_is_named(candidate, baseline, options, error, message):
    with pytest.raises(error, match=message):
        compare(candidate, baseline, seed=1, **options)


def test_align_sorts_by_qid_and_refuses_different_queries():
    qids, arrays = align({"a": {"q2": 2.0, "q1": 1.0}, "b": {"q1": 3.0, "q2": 4.0}})
    assert qids == ("q1", "q2")
    assert arrays["a"].tolist() == [1.0, 2.0]
    assert arrays["b"].tolist() == [3.0, 4.0]
    with pytest.raises(BenchmarkError, match="arm 'b' and arm 'a' do not share query 'q2'"):
        align({"a": {"q1": 1.0, "q2": 1.0}, "b": {"q1": 1.0}})
