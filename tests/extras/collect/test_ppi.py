from __future__ import annotations

import numpy as np
import pytest

from ragbench.base.errors import ResultsError
from ragbench.extras.collect.model_judged import prediction_powered_mean


def test_a_model_that_is_always_right_counts_as_more_topics() -> None:
    generator = np.random.default_rng(1)
    gold, rest = generator.normal(0.1, 0.2, 20), generator.normal(0.1, 0.2, 180)
    found = prediction_powered_mean(gold, gold, rest)
    ours, others = np.var(gold, ddof=1) / 20, np.var(rest, ddof=1) / 180
    assert found.weight == pytest.approx(ours / (ours + others))
    assert found.mean == pytest.approx(gold.mean() + found.weight * (rest.mean() - gold.mean()))
    # Both variances together: 1 / (1 / ours + 1 / others).
    assert ((found.high - found.low) / (found.annotators_high - found.annotators_low)) ** 2 == pytest.approx(
        others / (ours + others)
    )
    assert found.high - found.low < 0.7 * (found.annotators_high - found.annotators_low)


def test_a_model_that_says_nothing_changes_nothing() -> None:
    gold = np.linspace(-0.2, 0.4, 12)
    constant = prediction_powered_mean(gold, np.full(12, 0.3), np.full(50, 0.3))
    assert constant.weight == 0 and (constant.mean, constant.low) == (constant.annotators, constant.annotators_low)
    against = prediction_powered_mean(gold, -gold, -gold)
    assert against.weight == 0 and against.mean == pytest.approx(gold.mean())
    alone = prediction_powered_mean(gold, gold, [])
    assert alone.weight == 0 and alone.model == pytest.approx(gold.mean())


def test_intervals_hold_the_truth_though_the_model_is_off() -> None:
    generator, held = np.random.default_rng(2), 0
    for _ in range(400):
        truth = generator.normal(0.05, 0.2, 150)
        model = 0.7 * truth + 0.1 + generator.normal(0, 0.1, 150)  # finds .085 more
        found = prediction_powered_mean(truth[:25], model[:25], model[25:])
        held += found.low <= 0.05 <= found.high
    assert 0.91 < held / 400 < 0.98


def test_few_topics_of_annotators_are_refused() -> None:
    with pytest.raises(ResultsError, match="people judged 9 topics, and a model's grades count only next to 10"):
        prediction_powered_mean(np.zeros(9), np.zeros(9), np.zeros(50))
