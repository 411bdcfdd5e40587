"""Time is measured where it is spent."""

import numpy as np
import pytest

from ragbench.configuration import LatencySpec
from ragbench.engine.executor import Arm
from ragbench.engine.pipeline import Pipeline
from ragbench.errors import ConfigError
from ragbench.stages.cut import Cut
from ragbench.stages.dense import RetrieveDense
from ragbench.stages.fuse import Fuse
from ragbench.timing.latency import measure, percentiles

SPEC = LatencySpec(queries=4, rounds=3, warmup=2, cold_start=False)


@pytest.fixture
def timings(index, benchmark_small, sleep):
    base = (("dense", RetrieveDense(depth=5)), ("fuse", Fuse()))
    arms = [
        Arm("plain", Pipeline((*base, ("cut", Cut(5)))), index),
        Arm("sleepy", Pipeline((*base, ("sleep", sleep(0.02)), ("cut", Cut(5)))), index),
    ]
    return measure(arms, [topic.query() for topic in benchmark_small.topics], SPEC)


def test_a_stage_that_sleeps_shows_in_its_own_row_and_nowhere_else(timings) -> None:
    frame = timings["sleepy"].frame()
    # The shortest sleep: on a busy machine others end late.
    assert 20 <= frame["sleep"].min() < 23
    assert frame["fuse"].median() < 5
    assert frame["cut"].median() < 5


def test_stages_sum_to_the_whole(timings) -> None:
    for timing in timings.values():
        assert np.allclose(timing.samples_ms[:, :-1].sum(axis=1), timing.samples_ms[:, -1], rtol=0.03)


def test_every_arm_answers_every_sampled_query_in_every_round(timings) -> None:
    assert {name: timing.samples_ms.shape for name, timing in timings.items()} == {"plain": (12, 4), "sleepy": (12, 5)}
    assert len(set(timings["plain"].qids)) == 4


def test_nothing_is_remembered(index, benchmark_small, monkeypatch) -> None:
    from ragbench.models import cache

    def refuse(*_: object) -> None:
        raise AssertionError("time was measured through a cache")

    monkeypatch.setattr(cache.EmbeddingCache, "get_many", refuse)
    arm = Arm("plain", Pipeline((("dense", RetrieveDense(depth=5)), ("fuse", Fuse()))), index)
    measure([arm], [topic.query() for topic in benchmark_small.topics], SPEC)


def test_percentiles_by_hand() -> None:
    found = percentiles(np.arange(1.0, 101.0))
    assert (found["p50"], found["p95"], found["mean"]) == (50.5, pytest.approx(95.05), 50.5)
    assert found["p50_low"] <= 50.5 <= found["p50_high"]


@pytest.mark.parametrize("parameters", [{"queries": 0}, {"rounds": 0}, {"threads": 0}, {"warmup": -1}])
def test_bad_parameters_are_named(parameters: dict) -> None:
    with pytest.raises(ConfigError, match=f"LatencySpec.{next(iter(parameters))}"):
        LatencySpec(**parameters)
