"""What a comparison could have found."""

import math

import numpy as np
import pytest

from ragbench.base.minimums import FOR_MDE as FEW
from ragbench.base.types import ConfigError
from ragbench.evidence import max_t, t_statistic
from ragbench.evidence.statistics import compare, compare_all, minimum_detectable_effect, queries_needed
from tests.naming import naming


@pytest.mark.parametrize(("n", "family"), [(5, 1), (50, 1), (200, 13), (5_000, 1)])
def test_power_minimum_detectable_effect_is_that_of_statsmodels(n, family):
    """statsmodels gives it a power of 80% within 1e-6; it also counts significance in the wrong direction."""
    from statsmodels.stats.power import TTestPower

    effect = minimum_detectable_effect(2.0, n, family=family)
    assert TTestPower().power(effect / 2.0, n, 0.05 / family) == pytest.approx(0.8, abs=1e-6)


def test_power_minimum_detectable_effect_by_the_textbook():
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
    with pytest.raises(ConfigError, check=naming("greater than 0")):
        queries_needed(0.0, 0.1)


def test_power_of_normal_differences_is_near_the_t_test():
    differences = np.random.default_rng(1).normal(0.0, 0.15, 100)
    result = compare(differences, np.zeros(100), seed=1)
    assert result.mde == pytest.approx(minimum_detectable_effect(result.sd, 100), rel=0.1)


def test_power_nothing_is_said_where_few_queries_changed():
    differences = np.random.default_rng(1).normal(0.0, 0.15, (3, 60))
    differences[1, FEW - 1 :] = 0.0
    differences[2, FEW:] = 0.0
    result = compare_all(differences, np.zeros_like(differences), seed=1)
    assert [math.isnan(item.mde) for item in result] == [False, True, False]
    assert math.isnan(compare(differences[0, : FEW - 1], np.zeros(FEW - 1), seed=1).mde)


def test_power_planted_effect_of_this_size_is_found_in_four_of_five():
    """200 experiments of 60 queries, half of them ties: the claim of one, tried in another; three points of error."""
    generator, significant = np.random.default_rng(11), []

    def experiment():
        return generator.normal(0.0, 0.15, 60) * (generator.random(60) < 0.5)

    for seed in range(200):
        effect = compare(experiment(), np.zeros(60), seed=seed, draws=299).mde
        values = experiment()
        values = values + (values != 0) * effect / 0.5
        n = np.array([60])
        z = t_statistic.statistic(n, *t_statistic.sums(values[np.newaxis]), t_statistic.floor(values[np.newaxis], n))
        largest = max_t.simulate(values[np.newaxis], np.ones((1, 60), dtype=bool), seed, 299)
        significant.append(z[0] > 0 and max_t.p_values(z, largest)[0] <= 0.05)
    assert 0.70 <= np.mean(significant) <= 0.89
