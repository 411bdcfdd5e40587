from __future__ import annotations

import math

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.extras.collect.agreement import agreement


def test_agreement_of_common_pairs_by_hand() -> None:
    first = {"q": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 3, "only first": 1}, "p": {"a": 1}}
    second = {"q": {"a": 0, "b": 1, "c": 3, "d": 3, "e": 2, "only second": 1}}
    measured = agreement(first, second)
    assert (measured.n_pairs, measured.n_topics, measured.same) == (5, 1, pytest.approx(0.6))
    # Squared distances: observed 2 / 5 = 0.4, expected 2 * (.04*1 + .04*4 + .08*9 + .04*1 + .08*4 + .08*1) = 2.72.
    assert measured.kappa == pytest.approx(1 - 0.4 / 2.72)


def test_kappa_keeps_distance_of_grades_nobody_gave() -> None:
    measured = agreement({"q": {"a": 0, "b": 3, "c": 0, "d": 2}}, {"q": {"a": 0, "b": 3, "c": 3, "d": 2}})
    # Observed 9 / 4. Expected over the marginals (2, 0, 1, 1) / 4 and (1, 0, 1, 2) / 4:
    # (2*1*4 + 2*2*9 + 1*1*4 + 1*2*1 + 1*1*9 + 1*1*1) / 16 = 60 / 16.
    assert measured.kappa == pytest.approx(1 - (9 / 4) / (60 / 16))


def test_kappa_of_perfect_and_of_constant_grades() -> None:
    assert agreement({"q": {"a": 0, "b": 2}}, {"q": {"a": 0, "b": 2}}).kappa == 1.0
    constant = agreement({"q": {"a": 1, "b": 1}}, {"q": {"a": 1, "b": 1}})
    assert constant.same == 1.0 and math.isnan(constant.kappa)


def test_agreement_refuses_judgments_without_common_pair() -> None:
    with pytest.raises(BenchmarkError):
        agreement({"q": {"a": 1}}, {"q": {"b": 1}})
