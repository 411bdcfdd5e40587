"""What a change adds to p95: paired over queries, repeats of a query together."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ragbench.config import composition
from ragbench.evaluation.measures import DOCUMENT
from ragbench.evidence.arms import Arms, ComparedArm, Policy
from ragbench.evidence.cost import END_TO_END, Cost, Times, _Added, _added_p95, cost, noise_ms
from ragbench.evidence.statistics import Contrast


def samples(values: np.ndarray) -> pd.DataFrame:
    """Milliseconds of shape (queries, rounds) as an arm writes them."""
    queries, rounds = values.shape
    return pd.DataFrame({"qid": np.repeat([f"q{n}" for n in range(queries)], rounds), "total": values.ravel()})


def test_cost_constant_difference_has_no_interval():
    base = np.random.default_rng(1).gamma(3.0, 5.0, (80, 3))
    result = _added_p95(Contrast.of("b", "a").weights, {"a": samples(base), "b": samples(base + 12.0)}, 1)
    assert result.p95_ms == pytest.approx(12.0)
    assert result.low_ms <= 12 <= result.high_ms
    assert result.high_ms - result.low_ms < 6  # of times that go up to some 40 ms
    assert _Added(12.2, 9.1, 15.8).text == "+12 ms [+9, +16]"


def test_cost_slow_queries_are_slow_in_both_arms():
    """Arms share their slow queries: the interval of the difference is far narrower than that of either p95."""
    generator = np.random.default_rng(2)
    base = generator.gamma(1.0, 50.0, (80, 1)) + generator.normal(0, 1, (80, 3))
    times = {"a": samples(base), "b": samples(base + 10 + generator.normal(0, 1, (80, 3)))}
    result = _added_p95(Contrast.of("b", "a").weights, times, 1)
    assert result.low_ms < 10 < result.high_ms
    assert result.high_ms - result.low_ms < 40  # p95 itself is some 150 ms, give or take 50


def test_cost_contrast_of_weighted_arms():
    base = np.full((10, 2), 100.0)
    times = {"none": samples(base), "a": samples(base + 8), "b": samples(base + 2), "a+b": samples(base + 20)}
    contrast = Contrast(("a",), {"a": 0.5, "a+b": 0.5}, {"none": 0.5, "b": 0.5})
    assert _added_p95(contrast.weights, times, 1).p95_ms == pytest.approx(0.5 * (108 + 120) - 0.5 * (100 + 102))


def test_cost_arm_that_was_not_timed_has_no_cost():
    assert cost(Contrast.of("b", "a"), {"a": Times(samples(np.ones((3, 2))))}, 50, 1).added is None


@pytest.mark.parametrize(
    ("cost", "axis"),
    [
        (Cost(_Added(10, 5, 15), 50), "within"),
        (Cost(_Added(50, 45, 50), 50), "within"),
        (Cost(_Added(50, 45, 51), 50), "open"),
        (Cost(_Added(60, 50.1, 70), 50), "over"),
        (Cost(None, 50), "open"),
        (Cost(_Added(10, 5, 15), 50, disturbed="busy", noise_ms=3.0), "within"),  # its interval says all
        (Cost(_Added(900, 800, 1000), None), "off"),
        (Cost(None, 50, wanted=False), "off"),
    ],
)
def test_cost_axis(cost, axis):
    assert cost.axis == axis


def test_cost_re_ranking_may_take_longer():
    # seed 000, goals: 150 ms for re-ranking, 50 ms for other changes
    base, other, reranking = (composition.compose(words).config for words in ([], ["p2=on"], ["p6=on"]))
    policy = Policy.of(base)
    assert policy.budget_ms([other], [base]) == 50
    assert policy.budget_ms([reranking], [base]) == 150
    assert policy.budget_ms([reranking], [reranking]) == 50


PAIR = Contrast.of("b", "a")


def timed(values: np.ndarray, **machine) -> Times:
    return Times(samples(values), **machine)


def test_cost_disturbed_machine_widens_the_interval_by_what_it_may_have_moved():
    """Rounds of +10, +14 and +12 ms: half their range is 2. 3% of p95s of 100 and of at most 114 ms: 3 + 3.42."""
    base = np.full((80, 3), 100.0)
    arm = base + np.array([10.0, 14.0, 12.0])
    times = {"a": timed(base, lost=0.03), "b": timed(arm, lost=0.03, disturbed="the host took 3% of its time")}
    assert noise_ms(PAIR.weights, times) == pytest.approx(2 + 3 + 3.42)
    quiet = _added_p95(PAIR.weights, {name: item.samples for name, item in times.items()}, 1)
    result = cost(PAIR, times, 50, 1)
    assert result.added.low_ms == pytest.approx(quiet.low_ms - 8.42)
    assert result.added.high_ms == pytest.approx(quiet.high_ms + 8.42)
    assert result.axis == "within"  # +14 of 50 was in no doubt
    assert cost(PAIR, times, 20, 1).axis == "open"  # +14 of 20 is


def test_cost_on_a_busy_machine_the_wait_for_a_processor_is_subtracted():
    """Both compute 40 ms; other programs delay the candidate by 30 to 90 ms, and the sleep of a third counts."""
    generator = np.random.default_rng(4)
    delay = generator.uniform(30, 90, (80, 2))
    busy = {"disturbed": "other programs kept 2.0 of 2 processors busy", "lost": 0.6, "stolen": 0.01}

    def of(computing: float, waited: np.ndarray) -> Times:
        times = timed(computing + waited, **busy)
        return replace(times, samples=times.samples.assign(waited=waited.ravel()))

    fast = {"a": of(40.0, 0.0 * delay), "b": of(45.0, delay)}
    result = cost(PAIR, fast, 50, 1)
    assert result.net and result.axis == "within"
    assert result.added.p95_ms == pytest.approx(5.0) and result.noise_ms == pytest.approx(0.01 * (40 + 45))
    assert "time waiting for a CPU subtracted" in result.text
    slow = {"a": of(40.0, 0.0 * delay), "b": timed(145.0 + delay, **busy)}  # it sleeps, and nothing was counted
    assert not cost(PAIR, slow, 50, 1).net
    slept = {"a": of(40.0, 0.0 * delay), "b": of(145.0, delay)}
    assert cost(PAIR, slept, 50, 1).axis == "over"


@pytest.mark.parametrize("side", ["a", "b"])
def test_cost_either_side_may_be_the_disturbed_one(side):
    base = np.full((80, 2), 40.0)
    times = {"a": base, "b": base + 45}
    result = {
        name: timed(item, **({"disturbed": "busy", "lost": 0.2} if name == side else {}))
        for name, item in times.items()
    }
    assert cost(PAIR, {name: timed(item) for name, item in times.items()}, 50, 1).axis == "within"
    assert cost(PAIR, result, 50, 1).axis == "open"
    assert "ragbench run --remeasure-latency @1" in cost(PAIR, result, 50, 1).remedy


def test_cost_times_of_unlike_machines_are_not_compared():
    base = np.full((80, 2), 40.0)
    result = cost(
        PAIR, {"a": timed(base, machine="old, 2 processors"), "b": timed(base, machine="new, 8 processors")}, 50, 1
    )
    assert (result.axis, result.added) == ("open", None)
    assert result.text.startswith("the times are of different machines (new, 8 processors; old, 2 processors)")


def test_cost_too_few_queries_bear_no_interval_and_the_cost_is_open():
    base = np.full((71, 2), 40.0)
    result = cost(PAIR, {"a": timed(base), "b": timed(base + 3)}, 50, 1)
    assert result.axis == "open"
    assert result.text == "p95 +3 ms (no CI: fewer than 72 queries), possibly over the budget of +50 ms"
    assert result.added.p95_ms == pytest.approx(3)
    assert "latency.queries=72" in result.remedy
    assert cost(PAIR, {"a": timed(base)}, 50, 1).remedy == "Measure latency: ragbench run --remeasure-latency @1"


def test_cost_live_search_has_no_cost_against_a_pipeline():
    """Its time holds the network; two live searches are compared with each other."""
    base = np.random.default_rng(4).gamma(3.0, 5.0, (80, 2))
    times = {"ours": Times(samples(base)), **{n: Times(samples(base + 9), elsewhere=True) for n in ("live", "other")}}
    local = composition.compose([]).config
    live = {**local, "live": {"_target_": "a.LiveHttp"}}
    configs = {"ours": local, "live": live, "other": live}
    values = {DOCUMENT: {f"q{n}": n / 40 for n in range(40)}}
    arms = Arms(
        {name: ComparedArm(values, times=times[name], config=configs[name]) for name in times},
        Policy.of(composition.compose([]).config),
    )
    (against,) = [row.cost for row in arms.against("ours") if row.contrast.factors == ("live",)]
    assert (against.axis, against.added, against.text) == ("off", None, END_TO_END)
    assert "live=ragbench" in against.remedy
    assert cost(Contrast.of("other", "live"), times, 50, 1).axis == "within"
