"""Pooling over collections: against statsmodels, and against numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ragbench.base.errors import ResultsError
from ragbench.extras.atlas.meta import Expected, expect, moderate, pool, steadied

EFFECTS = [0.05, 0.01, -0.02, 0.11, 0.04, 0.03, 0.08, -0.01, 0.06, 0.02, 0.00, 0.05]
ERRORS = [0.02, 0.015, 0.02, 0.03, 0.01, 0.025, 0.02, 0.015, 0.03, 0.01, 0.02, 0.015]


def test_pooled_effects_are_those_of_statsmodels() -> None:
    meta_analysis = pytest.importorskip("statsmodels.stats.meta_analysis")
    found = pool(EFFECTS, ERRORS)
    variances = np.square(ERRORS)
    theirs = meta_analysis.combine_effects(np.array(EFFECTS), variances, method_re="iterated", use_t=True, atol=1e-12)
    assert found.effect == pytest.approx(theirs.mean_effect_re, abs=1e-6)
    assert found.tau**2 == pytest.approx(theirs.tau2, abs=1e-7)
    assert found.i2 == pytest.approx(theirs.i2, abs=1e-9)
    low, high = theirs.conf_int()[3]  # random effects by Hartung and Knapp; with Paule and Mandel their factor is 1
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-5)


def test_equal_effects_leave_no_variance_between_collections() -> None:
    found = pool([0.02] * 12, [0.01] * 12)
    assert (found.tau, found.i2, found.helps) == (0.0, 0.0, 12)
    # error .01 / sqrt 12 = .0028868; t of 11 degrees at .975 is 2.20099
    assert found.low == pytest.approx(0.02 - 2.20099 * 0.0028868, abs=1e-6)
    assert found.predicted_low == pytest.approx(found.low)


def test_the_prediction_is_wider_than_the_mean_where_collections_differ() -> None:
    found = pool(EFFECTS, ERRORS)
    assert found.predicted_low < found.low < found.effect < found.high < found.predicted_high
    assert found.sd**2 > found.tau**2


def test_a_change_that_alters_nothing_has_no_infinite_weight() -> None:
    found = pool([0.0, 0.05, 0.05], [0.0, 0.001, 0.001])
    assert 0.0 < found.effect < 0.05


def test_a_collection_where_no_topic_changed_is_not_known_exactly() -> None:
    # variances by topic .04, .04 and 0 with 25 topics each: .08 / 3 in common, counted as 20 topics beside 24
    found = steadied([0.04, 0.04, 0.0], [25, 25, 25])
    assert found[0] == pytest.approx(((24 * 0.04 + 20 * 0.08 / 3) / 44 / 25) ** 0.5)
    assert found[2] == pytest.approx((20 * 0.08 / 3 / 44 / 25) ** 0.5)


def test_one_collection_cannot_be_pooled() -> None:
    with pytest.raises(ResultsError, match="two collections or more"):
        pool([0.1], [0.01])
    with pytest.raises(ResultsError, match="not a finite number"):
        pool([0.1, float("nan")], [0.01, 0.01])


def test_expectation_is_between_what_is_known_and_what_was_measured() -> None:
    known = pool([0.04] * 12, [0.02] * 12)
    nothing = expect(known)
    assert nothing == Expected(known.effect, known.sd)
    # prior .04 with variance .02^2 / 12; own mean -.06 with variance of 2 topics, -.1 and -.02: .08^2 / 2 / 2 = .0016
    both = expect(known, [-0.1, -0.02])
    prior = 0.02**2 / 12
    precision = 1 / prior + 1 / 0.0016
    assert both.effect == pytest.approx((0.04 / prior - 0.06 / 0.0016) / precision)
    assert both.sd == pytest.approx(precision**-0.5)
    assert both.better > 0.99


def test_equal_topics_are_not_taken_for_certainty() -> None:
    known = pool(EFFECTS, ERRORS)
    assert expect(known, [0.0, 0.0, 0.0], typical_sd=0.2).better > 0.5
    assert expect(known, [0.0], typical_sd=0.2).effect == pytest.approx(known.effect, abs=0.01)


def test_many_topics_outweigh_what_is_known() -> None:
    known = pool([0.04] * 12, [0.02] * 12)
    own = [-0.05, -0.03] * 5000
    assert expect(known, own, typical_sd=0.2).effect == pytest.approx(-0.04, abs=0.02)


def test_slopes_find_what_effects_vary_with_and_are_shrunk() -> None:
    generator = np.random.default_rng(13)
    size, noise = generator.normal(size=40), generator.normal(size=40)
    effects = 0.05 * size + generator.normal(0, 0.01, 40)
    found = {each.name: each for each in moderate(effects.tolist(), [0.01] * 40, {"size": size, "noise": noise})}
    assert 0.02 < found["size"].low < found["size"].slope < 0.05 * size.std() + 0.005
    assert found["noise"].low < 0 < found["noise"].high
    assert moderate(effects.tolist(), [0.01] * 40, {"same": [1.0] * 40}) == []
