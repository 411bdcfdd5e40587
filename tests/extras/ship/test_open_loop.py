"""Queries that arrive at their own pace: what waits, what saturates, and that the real queue is the simulated one."""

import numpy as np
import pytest

from ragbench.base.errors import ConfigError
from ragbench.evaluation import latency
from ragbench.evaluation.latency import LatencySpec, Timing
from ragbench.extras.ship import open_loop
from ragbench.extras.ship.open_loop import Served, measure, poisson_ms, saturation, sentences, simulate, table
from ragbench.search.engine.executor import Arm
from ragbench.search.engine.pipeline import Pipeline
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.retrieve import RetrieveLexical

SPEC = LatencySpec(queries=4, rounds=1, warmup=1, cold_start=False, arrival_qps=(150, 20), arrivals=30)


@pytest.fixture
def arm(index, takes, clock, monkeypatch: pytest.MonkeyPatch) -> Arm:
    """11 ms of service: it keeps up with 20 queries a second and not with 150."""
    monkeypatch.setattr(open_loop, "time", clock)
    stages = (("lexical", RetrieveLexical(depth=5)), ("fuse", Fuse()), ("slow", takes(0.011)))
    return Arm("slow", Pipeline(stages), index)


@pytest.fixture
def served(arm, benchmark_small) -> list[Served]:
    return measure([arm], [topic.query() for topic in benchmark_small.topics], SPEC)


def test_a_queue_by_hand() -> None:
    # answered at 10, 20 (waits 8), 40 (idle 10), 50 (waits 9)
    assert simulate(np.array([0.0, 2, 30, 31]), np.full(4, 10.0)).tolist() == [10, 18, 10, 19]


def test_arrivals_keep_their_rate_and_have_exponential_gaps() -> None:
    from scipy.stats import kstest

    arrivals = poisson_ms(50, 4_000, seed=1)
    assert (np.diff(arrivals) >= 0).all()
    assert 79_000 < arrivals[-1] <= 80_000
    assert kstest(np.diff(arrivals), "expon", args=(0, 20)).pvalue > 0.01
    assert np.array_equal(arrivals, poisson_ms(50, 4_000, seed=1))


def test_the_served_queue_is_that_of_its_arrivals_and_service_times(served) -> None:
    for each in served:
        assert each.answered - each.begun == pytest.approx(11)
        assert each.response_ms == pytest.approx(simulate(each.arrived, np.full(30, 11.0)))


def test_rates_are_served_in_ascending_order_and_overload_queues(served) -> None:
    slow, fast = served
    assert (slow.qps, fast.qps) == (20, 150)
    assert (slow.keeps_up, fast.keeps_up) == (True, False)
    assert (slow.load, fast.load) == (pytest.approx(20 * 0.011), pytest.approx(150 * 0.011))
    assert fast.queue_at_end > 5
    assert fast.response_ms[-1] > 5 * np.median(fast.answered - fast.begun)


def test_the_table_has_a_row_for_every_arm_and_rate(served) -> None:
    timings = {"slow": Timing("slow", ("total",), ("t1",) * 5, np.full((5, 1), 11.0), np.empty((0, 1)))}
    frame = table(served, timings, seed=1)
    assert frame[["arm", "qps", "queries"]].to_numpy().tolist() == [["slow", 20, 30], ["slow", 150, 30]]
    assert frame["load"].tolist() == [pytest.approx(each.load) for each in served]
    expected = simulate(served[1].arrived, np.full(30, 11.0))
    assert frame["expected_p95"][1] == pytest.approx(np.percentile(expected, 95))
    assert (frame["p99"] >= frame["p95"]).all()
    assert (frame["p95"] >= frame["p50"]).all()
    assert saturation(frame) == {"slow": 20}
    assert sentences(frame) == ["slow: saturates above 20 queries a second; at 150 the queue grows"]


@pytest.mark.parametrize(
    ("keeps_up", "qps", "said"),
    [
        ([True, True, True], 30, "keeps up with every rate, the largest 30"),
        ([True, False, True], 10, "saturates above 10 queries a second; at 20"),  # a lucky rate above does not count
        ([False, False, False], 0, "the queue grows already at 10 queries a second"),
    ],
)
def test_saturation_is_the_largest_rate_before_the_first_that_queues(keeps_up, qps, said) -> None:
    import pandas as pd

    frame = pd.DataFrame({"arm": "a", "qps": [10.0, 20.0, 30.0], "keeps_up": keeps_up})
    assert saturation(frame) == {"a": qps}
    assert said in sentences(frame)[0]


def test_it_is_off_unless_asked_for(arm, benchmark_small) -> None:
    assert LatencySpec().rates == ()
    assert LatencySpec(arrival_qps=5.0).rates == (5.0,)
    assert measure([arm], [benchmark_small.topics[0].query()], LatencySpec(warmup=0)) == []


@pytest.mark.parametrize("rates", [0.0, (5.0, -1.0)])
def test_rates_are_above_zero(rates) -> None:
    with pytest.raises(ConfigError, match=r"LatencySpec.arrival_qps must be a number above 0"):
        LatencySpec(arrival_qps=rates)


def test_nothing_is_remembered(arm, benchmark_small, monkeypatch) -> None:
    threads = []
    original = latency.without_caches
    monkeypatch.setattr(
        "ragbench.extras.ship.open_loop.without_caches", lambda *given: threads.append(given[2]) or original(*given)
    )
    measure([arm], [benchmark_small.topics[0].query()], LatencySpec(arrival_qps=200.0, arrivals=2, warmup=0, threads=1))
    assert threads == [1]
