"""What else the machine does: observed for real, and judged by hand-made observations."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.evaluation.machine import Watch, _MachineState as MachineState, waited_ms

QUIET = MachineState(seconds=10.0, load=1.1, others=0.2, steal=0.0, switches=3.0, processors=4)


def test_machine_is_observed_before_and_while_timing() -> None:
    with Watch() as watch:
        sum(range(10**6))
    result = watch.record()
    assert set(result) == {"before", "timing", "busy"}
    for when in ("before", "timing"):
        assert result[when]["processors"] >= 1
        assert result[when]["seconds"] > 0
        assert all(value >= 0 for value in result[when].values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"others": 1.0, "steal": 0.02, "switches": 50.0}, None),
        ({"others": 1.3}, "other programs kept 1.3 of 4 CPUs busy"),
        ({"steal": 0.06}, "the host of this virtual machine took 6% of its time"),
        ({"switches": 140.2}, "other programs interrupted the measurement 140 times a second"),
    ],
)
def test_machine_above_a_limit_the_reason_is_told(changes: dict, message: str | None) -> None:
    observed = replace(QUIET, **changes)
    assert observed.busy == message
    for pair in ((observed, QUIET), (QUIET, observed)):
        watch = Watch()
        watch.before, watch.timing = pair
        assert watch.record()["busy"] == message


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="only Linux counts the wait of a thread")
def test_machine_sleep_is_no_wait_for_a_processor() -> None:
    before = waited_ms()
    time.sleep(0.2)
    assert 0 <= waited_ms() - before < 150


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="only Linux counts the wait of a thread")
def test_machine_thread_that_others_keep_from_running_waits() -> None:
    """Several programs on one processor, with this thread: most of its wall time is waiting, and the rest computing."""
    processor = min(os.sched_getaffinity(0))
    loop = f"import os; os.sched_setaffinity(0, [{processor}])\nwhile True: pass"
    given = os.sched_getaffinity(0)
    others = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(3)]
    try:
        os.sched_setaffinity(0, [processor])
        time.sleep(0.3)
        before, cpu, start = waited_ms(), time.thread_time(), time.perf_counter()
        while time.thread_time() - cpu < 0.3:
            pass
        waited, wall = waited_ms() - before, 1000 * (time.perf_counter() - start)
    finally:
        os.sched_setaffinity(0, given)
        for other in others:
            other.kill()
            other.wait()
    assert waited > 0.4 * wall
    assert wall - waited == pytest.approx(300, rel=0.2)
