"""What more workers give, and what an arm costs beside its work.

python -m pytest research/bench/test_execution.py --benchmark-only -s
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ragbench.base.pools import Failure, LocalPool
from ragbench.benchmark.load import load
from ragbench.config import composition
from ragbench.config.arm_builder import ArmBuilder
from ragbench.experiment import worker
from ragbench.experiment.execution import dispatch, groups
from ragbench.experiment.plan import Plan, surveyed
from ragbench.experiment.worker import Job

# Near-copies are looked for before anything that differs, so that no arm finds work done by another.
ARMS = ["p12=on", f"p12.threshold={','.join(f'0.{n}' for n in range(70, 79))}", "cut.top_n=20"]
SMALL = ["p12=on", "p12.threshold=0.7,0.8", f"cut.top_n={','.join(map(str, range(10, 15)))}"]


@pytest.fixture(scope="module")
def around() -> list[str]:
    """Overrides with an index that is built already, in the default place."""
    overrides = ["split=all"]
    settings = composition.compose(["p12=on", *overrides])
    (arm,) = ArmBuilder.of(settings, load(settings.config["data"])).arms([settings])
    arm.index.prepare(arm.pipeline.needs)
    return overrides


@contextmanager
def started(coming: Plan, count: int) -> Iterator[LocalPool]:
    """Workers that have answered once, so that Java and models are there."""
    first = next(iter(coming.arms.values()))
    with LocalPool(count, (worker.begin, Job.of(coming, 1))) as workers:
        for future in [workers.submit(number, worker.run, first.name, first.config) for number in range(count)]:
            assert not isinstance(future.result(), Failure)
        yield workers


def planned(overrides: list[str]) -> Plan:
    settings = composition.sweep(overrides)
    return surveyed(settings, load(settings[0].config["data"]), "run")


def seconds(coming: Plan, count: int) -> float:
    others = list(coming.arms.values())[1:]
    with started(coming, count) as workers:
        begun = time.perf_counter()
        answers = list(dispatch(groups(others, count), workers, 0))
        took = time.perf_counter() - begun
    assert len(answers) == len(others)
    return took


def test_two_workers_against_one(benchmark, around: list[str]) -> None:
    coming = planned([*ARMS, *around])
    one = seconds(coming, 1)
    two = benchmark.pedantic(seconds, args=(coming, 2), rounds=1)
    print(f"\n{len(coming.arms) - 1} arms: 1 worker {one:.1f} s, 2 workers {two:.1f} s, {one / two:.2f} times as fast")


def test_what_an_arm_costs_beside_its_work(benchmark, around: list[str]) -> None:
    coming = planned([*SMALL, *around])
    with started(coming, 1) as workers:

        def run_all() -> None:
            for arm in coming.arms.values():
                workers.submit(0, worker.run, arm.name, arm.config).result()

        run_all()  # now every arm is only a look at what is there
        begun = time.perf_counter()
        benchmark.pedantic(run_all, rounds=1)
        each_ms = (time.perf_counter() - begun) / len(coming.arms) * 1e3
    print(f"\n{len(coming.arms)} arms of {len(coming.queries)} queries: {each_ms:.0f} ms each")
