from __future__ import annotations

import math

import pytest

from ragbench.base.errors import BenchmarkError
from ragbench.extras.collect.agreement import Disagreement, agreement

FIRST = {"q": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 3, "only first": 1}, "p": {"a": 1}}
SECOND = {"q": {"a": 0, "b": 1, "c": 3, "d": 3, "e": 2, "only second": 1}}


def test_worked_by_hand() -> None:
    found = agreement(FIRST, SECOND)
    assert (found.n_pairs, found.n_topics, found.same) == (5, 1, pytest.approx(0.6))
    # Ten values: two each of 0, 1, 2 and four of 3.
    # Ordinal distances: (0,1) 4, (0,2) 16, (0,3) 49, (1,2) 4, (1,3) 25, (2,3) 9.
    # Observed 2 * 2 * 9 / 10 = 3.6; expected 2 * (4*4 + 4*16 + 8*49 + 4*4 + 8*25 + 8*9) / 90 = 1520 / 90.
    assert found.alpha_ordinal == pytest.approx(1 - 3.6 * 90 / 1520)
    # Chance agreement (1 + 1 + 1 + 2 * 2) / 25 = 0.28.
    assert found.kappa == pytest.approx((0.6 - 0.28) / 0.72)
    # Squared distances: observed 2 / 5 = 0.4, expected 2 * (.04*1 + .04*4 + .08*9 + .04*1 + .08*4 + .08*1) = 2.72.
    assert found.kappa_quadratic == pytest.approx(1 - 0.4 / 2.72)
    assert found.grades == (0, 1, 2, 3)
    assert found.counts == ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1), (0, 0, 1, 1))
    assert found.disagreements == (Disagreement("q", "c", 2, 3), Disagreement("q", "e", 3, 2))


def test_grades_that_nobody_gave_keep_their_distance() -> None:
    found = agreement({"q": {"a": 0, "b": 3, "c": 0, "d": 2}}, {"q": {"a": 0, "b": 3, "c": 3, "d": 2}})
    # Observed 9 / 4. Expected over the marginals (2, 0, 1, 1) / 4 and (1, 0, 1, 2) / 4:
    # (2*1*4 + 2*2*9 + 1*1*4 + 1*2*1 + 1*1*9 + 1*1*1) / 16 = 60 / 16.
    assert found.kappa_quadratic == pytest.approx(1 - (9 / 4) / (60 / 16))
    assert found.grades == (0, 2, 3)


def test_perfect_agreement_and_no_variation() -> None:
    perfect = agreement({"q": {"a": 0, "b": 2}}, {"q": {"a": 0, "b": 2}})
    assert (perfect.alpha_ordinal, perfect.kappa, perfect.kappa_quadratic) == (1.0, 1.0, 1.0)
    same = agreement({"q": {"a": 1, "b": 1}}, {"q": {"a": 1, "b": 1}})
    assert same.same == 1.0 and math.isnan(same.alpha_ordinal) and math.isnan(same.kappa)


def test_the_widest_disagreement_comes_first() -> None:
    found = agreement({"p": {"a": 0, "b": 1}, "q": {"a": 0}}, {"p": {"a": 1, "b": 1}, "q": {"a": 3}})
    assert [(d.qid, d.first, d.second) for d in found.disagreements] == [("q", 0, 3), ("p", 0, 1)]


def test_nothing_in_common() -> None:
    with pytest.raises(BenchmarkError, match="no pair in common"):
        agreement({"q": {"a": 1}}, {"q": {"b": 1}})
