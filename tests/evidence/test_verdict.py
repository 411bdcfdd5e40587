"""Two axes and one word, from comparisons written by hand."""

import math

import pytest

from ragbench.evidence.cost import Cost, _Added
from ragbench.evidence.statistics import Comparison
from ragbench.evidence.verdict import LevelComparison, _combine, _more_topics, _power_sentence, judge

EFFECT = 0.02


def comparison(difference, half, p=0.01, narrow=None, **fields):
    narrow = 0.8 * half if narrow is None else narrow
    plain = {"n": 120, "mean_candidate": 0.5 + difference, "mean_baseline": 0.5, "difference": difference}
    bounds = {"ci_low": difference - half, "ci_high": difference + half}
    inner = {"narrow_low": difference - narrow, "narrow_high": difference + narrow, "at_least": difference - narrow}
    counts = {"p_value": p, "wins": 50, "ties": 40, "losses": 30, "sd": 0.1, "mde": 0.026}
    return Comparison(**plain | bounds | inner | counts | fields)


def level(comparison, name="document", useful=None):
    return LevelComparison(name, "nDCG@10", comparison, useful)


GAIN = comparison(0.031, 0.019, 0.002)
LOSS = comparison(-0.031, 0.019, 0.002)
NOISE = comparison(0.004, 0.030, 0.9)
NEARLY = comparison(0.004, 0.029, 0.9)
NOTHING = comparison(0.004, 0.012, 0.6)  # [-0.0056, +0.0136] at the narrow level
SMALL_GAIN = comparison(0.010, 0.008, 0.004)  # surely above 0, and surely below .02
SMALL_LOSS = comparison(-0.010, 0.008, 0.004)
SAME = comparison(0.0, 0.0, 1.0, wins=0, ties=120, losses=0)


@pytest.mark.parametrize(
    ("documents", "passages", "quality"),
    [
        (GAIN, GAIN, "better"),
        (GAIN, NOISE, "open"),  # passages at least .004 - .024 = -.020: a loss that matters is not ruled out
        (GAIN, NEARLY, "better"),  # passages at least .004 - .0232 = -.0192
        (GAIN, NOTHING, "better"),
        (NOISE, GAIN, "open"),
        (NEARLY, GAIN, "better"),
        (GAIN, LOSS, "worse"),  # p13: documents up, passages down
        (GAIN, SMALL_LOSS, "open"),  # surely worse by something that does not matter: not adopted, not rejected
        (LOSS, NOISE, "worse"),
        (NOISE, NOISE, "open"),
        (NOTHING, NOISE, "open"),
        (NOTHING, NOTHING, "equivalent"),
        (SMALL_GAIN, NOTHING, "equivalent"),  # significant, and too small to adopt
        (SAME, SAME, "equivalent"),
    ],
)
def test_verdict_quality_of_two_levels(documents, passages, quality):
    assert _combine((level(documents), level(passages, "passage")), EFFECT) == quality


@pytest.mark.parametrize(
    ("result", "cost", "outcome", "reason"),
    [
        (
            GAIN,
            Cost(_Added(20, 15, 25), 50),
            "adopt",
            "Latency within budget: p95 +20 ms [+15, +25], within the budget of +50 ms",
        ),
        (
            GAIN,
            Cost(_Added(-5, -8, -2), 50),
            "adopt",
            "Quality significantly better: documents +0.031 [+0.012, +0.050], p = 0.002",
        ),
        (GAIN, Cost(_Added(60, 52, 70), 50), "reject", "over the budget of +50 ms"),
        (GAIN, Cost(_Added(48, 40, 55), 50), "inconclusive", "possibly over the budget"),
        (GAIN, Cost(None, 50), "inconclusive", "Latency unknown: latency was not measured, the budget is +50 ms"),
        (GAIN, Cost(None, None), "adopt", "latency was not measured, no budget is set"),
        (GAIN, Cost(_Added(731, 700, 760), None), "adopt", "no budget is set"),
        (
            GAIN,
            Cost(_Added(9, 4, 14), 50, disturbed="the host took 3% of its time", noise_ms=5.0),
            "adopt",
            "p95 +9 ms [+4, +14] (with 5 ms allowed for noise: the host took 3% of its time), within the budget of "
            "+50 ms",
        ),
        (LOSS, Cost(_Added(-20, -25, -15), 50), "reject", "Quality significantly worse"),
        (
            NOISE,
            Cost(_Added(3, 2, 4), 50),
            "inconclusive",
            "Minimum detectable effect with 120 queries: 0.026 (documents).",
        ),
        (NOISE, Cost(_Added(80, 70, 90), 50), "reject", "over the budget"),
        (NOTHING, Cost(_Added(3, 2, 4), 50), "equivalent", "equivalent (the effect is smaller than 0.02)"),
        (NOTHING, Cost(_Added(129, 107, 157), 200), "equivalent", "within the budget of +200 ms"),
        (NOTHING, Cost(_Added(49, 40, 57), 50), "inconclusive", "Time more queries: latency.queries="),
        (NOTHING, Cost(None, 50), "inconclusive", "Measure latency: ragbench run --remeasure-latency @1"),
        (SAME, Cost(_Added(3, 2, 4), 50), "equivalent", "none of 120 queries changed"),
    ],
)
def test_verdict_word_names_both_axes(result, cost, outcome, reason):
    verdict = judge({"document": level(result)}, cost, EFFECT)
    assert verdict.outcome == outcome
    assert reason in verdict.reason
    assert verdict.reason.endswith(".")
    assert "\n" not in verdict.reason


def test_verdict_both_levels_are_named():
    verdict = judge({"document": level(GAIN), "passage": level(LOSS, "passage")}, Cost(None, None), EFFECT)
    assert verdict.outcome == "reject"
    assert "documents +0.031 [+0.012, +0.050], p = 0.002: significantly better" in verdict.reason
    assert "passages -0.031 [-0.050, -0.012], p = 0.002: significantly worse" in verdict.reason


def test_verdict_word_that_holds_for_every_level_is_printed_once():
    for result, word in ((GAIN, "significantly better"), (LOSS, "significantly worse"), (NOISE, "inconclusive")):
        levels = {"document": level(result), "passage": level(result, "passage")}
        reason = judge(levels, Cost(None, None), EFFECT).reason
        assert reason.startswith(f"Quality {word}: documents ") and reason.count(word) == 1, reason


def test_verdict_what_keeps_a_gain_from_counting_is_said():
    reason = judge({"document": level(GAIN), "passage": level(NOISE, "passage")}, Cost(None, None), EFFECT).reason
    assert "Not adopted: passages must be non-inferior (margin 0.02) but may lose up to 0.020." in reason


def test_verdict_unjudged_hits_may_hide_a_loss():
    # At least .004 - .0096 = -.0056; were unjudged hits useful, the effect would be -.016, .020 lower: -.0256.
    assert level(NOTHING).not_worse(EFFECT)
    assert not level(NOTHING, useful=-0.016).not_worse(EFFECT)
    assert level(NOTHING, useful=0.5).at_least() == level(NOTHING).at_least()
    assert level(SAME).not_worse(0.0001)


@pytest.mark.parametrize(
    ("result", "useful", "quality"),
    [
        (LOSS, -0.02, "worse"),  # judging could only make the loss smaller: it stays one
        (LOSS, 0.004, "open"),  # were unjudged hits useful, it would be a gain
        (LOSS, -0.05, "worse"),
        (GAIN, 0.05, "better"),
        (GAIN, -0.001, "open"),
        (NOISE, -0.1, "open"),
    ],
)
def test_verdict_unjudged_hits_leave_open_what_they_could_turn_round(result, useful, quality):
    assert level(result, useful=useful).quality(EFFECT) == quality


def test_verdict_what_is_left_open_by_unjudged_hits_says_what_to_do():
    text = level(LOSS, useful=0.004).text(EFFECT)
    assert "the effect is +0.004 if unjudged results are imputed at the relevance of judged ones; pool and" in text


def test_verdict_needs_judgments_where_they_decide_a_sign():
    turned, same = level(LOSS, useful=0.004), level(LOSS, useful=-0.004)
    assert turned.needs_judgments and not same.needs_judgments
    assert not level(SAME, useful=0.1).needs_judgments  # no query changed
    assert judge({"document": same, "passage": turned}, Cost(None, None), EFFECT).needs_judgments
    assert not judge({"document": same}, Cost(None, None), EFFECT).needs_judgments


def test_verdict_without_an_interval_nothing_is_decided():
    two = comparison(0.5, math.nan, 0.5, math.nan, n=2, wins=2, ties=0, losses=0, mde=math.nan)
    assert level(two).quality(EFFECT) == "open"
    assert level(two).text(EFFECT) == "documents +0.500: 2 queries are too few to test"


def test_verdict_power_is_said_only_where_it_is_known():
    unknown = comparison(0.004, 0.030, 0.9, mde=math.nan)
    assert _power_sentence((level(NOISE), level(NOISE, "passage"))) == (
        "Minimum detectable effect with 120 queries: 0.026 (documents) and 0.026 (passages)."
    )
    assert _power_sentence((level(NOISE), level(unknown, "passage"))).endswith("120 queries: 0.026 (documents).")
    assert _power_sentence((level(unknown),)) == "Too few queries changed to estimate the minimum detectable effect."


def test_verdict_open_verdict_says_how_many_more_topics_would_settle_it():
    # 120 show .026; .02 is the smallest that matters: 120 * (1.3^2 - 1) = 82.8 more.
    message = "About 83 more queries are needed to detect a difference of 0.020 (80% power)."
    assert _more_topics((level(NOISE),), EFFECT) == [message]
    assert judge({"document": level(NOISE)}, Cost(None, None), EFFECT).reason.endswith(message)
    assert _more_topics((level(comparison(0.025, 0.03, 0.2)),), EFFECT)[0].startswith("About 10 more")
    assert _more_topics((level(comparison(0.03, 0.03, 0.2)),), EFFECT) == []  # enough of them: bad luck
    assert _more_topics((level(LOSS, useful=0.004),), EFFECT) == []  # judging is lacking, not topics
    assert _more_topics((level(comparison(0.0, 0.03, 0.2, mde=math.nan)),), EFFECT) == []


def test_verdict_p_is_never_0():
    assert "p < 0.0001" in level(comparison(0.03, 0.01, 0.00001)).text(EFFECT)
