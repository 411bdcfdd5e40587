import math

import pytest

from ragbench.comparison.statistics import Comparison, compare
from ragbench.comparison.verdict import LatencyCost, judge, latency_budget_ms, undervalues_the_worse
from ragbench.errors import ConfigError


def comparison(difference, low, high, **fields):
    plain = {
        "n": 120,
        "mean_candidate": 0.5 + difference,
        "mean_baseline": 0.5,
        "p_value": 0.01,
        "wins": 50,
        "ties": 40,
    }
    return Comparison(
        **plain | {"losses": 30, "sd": 0.1, "mde": 0.026} | fields, difference=difference, ci_low=low, ci_high=high
    )


GAIN = comparison(0.031, 0.012, 0.050)
LOSS = comparison(-0.031, -0.050, -0.012)
NOISE = comparison(0.004, -0.010, 0.018)


@pytest.mark.parametrize(
    ("compared", "p_holm", "latency", "unjudged", "outcome", "reason"),
    [
        (GAIN, 0.002, LatencyCost(20), 0.0, "adopt", "It raises quality"),
        (GAIN, 0.002, LatencyCost(-5), 0.0, "adopt", "-5 ms on p95 is within 50 ms"),
        (GAIN, 0.002, None, None, "adopt", "its latency was not measured"),
        (GAIN, 0.002, LatencyCost(50), None, "adopt", "+50 ms on p95 is within 50 ms"),
        (GAIN, 0.002, LatencyCost(51), None, "reject", "above the budget of 50 ms"),
        (GAIN, 0.002, LatencyCost(48, 40, 55), None, "inconclusive", "+48 ms [+40, +55] on p95 keeps within"),
        (GAIN, 0.002, LatencyCost(60, 52, 70), None, "reject", "It adds +60 ms [+52, +70] to p95"),
        (GAIN, 0.05, None, None, "adopt", "p = 0.05"),
        (GAIN, 0.0501, None, None, "inconclusive", "may be chance"),
        (LOSS, 0.002, LatencyCost(-20), 0.0, "reject", "It lowers quality"),
        (LOSS, 0.002, None, None, "reject", "It lowers quality"),
        (NOISE, 0.4, LatencyCost(3), 0.0, "inconclusive", "may be chance"),
        (NOISE, 0.4, LatencyCost(80), 0.0, "reject", "above the budget"),
        (GAIN, 0.002, LatencyCost(20), -0.051, "inconclusive", "Unjudged@10 differs by -5.1 points"),
        (LOSS, 0.002, LatencyCost(20), 0.2, "inconclusive", "neither wins until"),
        (LOSS, 0.002, LatencyCost(20), -0.2, "reject", "It lowers quality"),  # returns less, so less is unjudged
        (GAIN, 0.002, LatencyCost(20), 0.2, "adopt", "It raises quality"),  # judging more could only help it
        (GAIN, 0.002, LatencyCost(20), 0.70 - 0.75, "adopt", "It raises quality"),  # 5 points and a rounding error
        (GAIN, 0.002, LatencyCost(80), -0.2, "reject", "above the budget"),  # judging more would not make it faster
    ],
)
def test_verdict(compared, p_holm, latency, unjudged, outcome, reason):
    verdict = judge(compared, p_holm=p_holm, budget_ms=50, latency=latency, unjudged_difference=unjudged)
    assert verdict.outcome == outcome
    assert reason in verdict.reason
    assert verdict.reason.endswith(".")
    assert "\n" not in verdict.reason


@pytest.mark.parametrize(
    ("difference", "unjudged", "expected"),
    [(-0.1, 0.06, True), (-0.1, -0.06, False), (0.1, -0.06, True), (0.1, 0.06, False), (0.0, 0.9, False)],
)
def test_judgments_are_unfair_only_where_the_worse_arm_lacks_them(difference, unjudged, expected):
    assert undervalues_the_worse(difference, unjudged) is expected
    assert not undervalues_the_worse(difference, None)
    assert not undervalues_the_worse(difference, math.nan)


def test_the_reason_carries_the_evidence():
    assert judge(GAIN, p_holm=0.002, budget_ms=50, latency=LatencyCost(20, 15, 24)).reason == (
        "It raises quality: nDCG@10 +0.031 [+0.012, +0.050], p = 0.002, 120 queries; "
        "+20 ms [+15, +24] on p95 is within 50 ms."
    )
    assert "p < 0.0001" in judge(GAIN, p_holm=0.00009, budget_ms=50).reason


def test_inconclusive_says_what_could_have_been_found():
    assert judge(NOISE, p_holm=0.4, budget_ms=50, measure="R@10").reason == (
        "The difference may be chance: R@10 +0.004 [-0.010, +0.018], p = 0.4; with 120 queries a true difference of "
        "0.026 would be found four times in five, a smaller one less often."
    )


def test_arms_without_any_difference_and_a_single_query_have_their_own_reason():
    equal = judge(compare([0.5] * 30, [0.5] * 30, seed=1), p_holm=1.0, budget_ms=50)
    assert (equal.outcome, "equal on all 30 queries" in equal.reason) == ("inconclusive", True)
    single = judge(comparison(0.5, 0.5, 0.5, n=1, ties=0, mde=math.inf), p_holm=1.0, budget_ms=50)
    assert (single.outcome, "One query decides nothing" in single.reason) == ("inconclusive", True)


def test_significance_follows_the_confidence_of_the_comparison():
    strict = comparison(0.031, 0.001, 0.060, confidence=0.99)
    assert judge(strict, p_holm=0.02, budget_ms=50).outcome == "inconclusive"
    assert judge(strict, p_holm=0.009, budget_ms=50).outcome == "adopt"


@pytest.mark.parametrize(
    ("factor", "configured", "expected"),
    [("p6", None, 150), ("p1", None, 50), ("graph", None, 50), ("p6", 0, 0), ("p1", 80, 80)],
)
def test_budget(factor, configured, expected):
    assert latency_budget_ms(factor, configured) == expected


def test_budget_below_zero_is_refused():
    with pytest.raises(ConfigError, match=r"budget.p95_ms must be at least 0, got -1"):
        latency_budget_ms("p1", -1)
