"""Pooling over collections: against statsmodels, and against numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ragbench.base.types import ResultsError
from ragbench.extras.atlas.meta import expect, pool, steadied
from tests.naming import naming

EFFECTS = [0.05, 0.01, -0.02, 0.11, 0.04, 0.03, 0.08, -0.01, 0.06, 0.02, 0.00, 0.05]
ERRORS = [0.02, 0.015, 0.02, 0.03, 0.01, 0.025, 0.02, 0.015, 0.03, 0.01, 0.02, 0.015]


def test_pool_equals_statsmodels() -> None:
    meta_analysis = pytest.importorskip("statsmodels.stats.meta_analysis")
    pooled = pool(EFFECTS, ERRORS)
    variances = np.square(ERRORS)
    theirs = meta_analysis.combine_effects(np.array(EFFECTS), variances, method_re="iterated", use_t=True, atol=1e-12)
    assert pooled.effect == pytest.approx(theirs.mean_effect_re, abs=1e-6)
    assert pooled.tau**2 == pytest.approx(theirs.tau2, abs=1e-7)
    low, high = theirs.conf_int()[3]  # random effects by Hartung and Knapp; with Paule and Mandel their factor is 1
    wide = 2.200985 * pooled.error  # t of 11 degrees at .975
    assert (pooled.effect - wide, pooled.effect + wide) == pytest.approx((low, high), abs=1e-5)


def test_pool_of_equal_effects_has_no_variance_between_collections() -> None:
    pooled = pool([0.02] * 12, [0.01] * 12)
    assert (pooled.tau, pooled.effect) == (0.0, pytest.approx(0.02))
    assert pooled.sd == pooled.error == pytest.approx(0.01 / 12**0.5)


def test_prediction_is_less_certain_than_the_mean() -> None:
    pooled = pool(EFFECTS, ERRORS)
    assert pooled.sd > pooled.error > 0
    assert pooled.sd > pooled.tau


def test_pool_gives_no_collection_infinite_weight() -> None:
    pooled = pool([0.0, 0.05, 0.05], [0.0, 0.001, 0.001])
    assert 0.0 < pooled.effect < 0.05


def test_steadied_errors_by_hand() -> None:
    # variances by topic .04, .04 and 0 with 25 topics each: .08 / 3 in common, counted as 20 topics beside 24
    smoothed = steadied([0.04, 0.04, 0.0], [25, 25, 25])
    assert smoothed[0] == pytest.approx(((24 * 0.04 + 20 * 0.08 / 3) / 44 / 25) ** 0.5)
    assert smoothed[2] == pytest.approx((20 * 0.08 / 3 / 44 / 25) ** 0.5)


def test_pool_refuses_one_collection_and_unknown_effects() -> None:
    with pytest.raises(ResultsError, check=naming("two collections")):
        pool([0.1], [0.01])
    with pytest.raises(ResultsError, check=naming("finite")):
        pool([0.1, float("nan")], [0.01, 0.01])


def test_expect_by_hand() -> None:
    known = pool([0.04] * 12, [0.02] * 12)
    # prior .04 with variance .02^2 / 12; own mean -.06; squares of 2 topics .0032 and of 10 others .1: .1032 / 11 / 2
    both = expect(known, [-0.1, -0.02], typical_sd=0.1)
    prior, own = 0.02**2 / 12, 0.1032 / 11 / 2
    precision = 1 / prior + 1 / own
    assert both.effect == pytest.approx((0.04 / prior - 0.06 / own) / precision)
    assert both.sd == pytest.approx(precision**-0.5)
    assert both.better > 0.99


def test_expect_does_not_take_equal_topics_for_certainty() -> None:
    known = pool(EFFECTS, ERRORS)
    assert expect(known, [0.0, 0.0, 0.0], typical_sd=0.2).better > 0.5
    assert expect(known, [0.0], typical_sd=0.2).effect == pytest.approx(known.effect, abs=0.01)


def test_expect_follows_many_topics() -> None:
    known = pool([0.04] * 12, [0.02] * 12)
    own = [-0.05, -0.03] * 5000
    assert expect(known, own, typical_sd=0.2).effect == pytest.approx(-0.04, abs=0.02)
