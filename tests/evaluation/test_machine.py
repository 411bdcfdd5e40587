"""What else the machine does: observed for real, and judged by hand-made observations."""

from dataclasses import replace

import pytest

from ragbench.evaluation.machine import MachineState, Watch

QUIET = MachineState(seconds=10.0, load=1.1, others=0.2, steal=0.0, switches=3.0, processors=4)


def test_the_machine_is_observed_before_and_while_timing() -> None:
    with Watch() as watch:
        sum(range(10**6))
    found = watch.record()
    assert set(found) == {"before", "timing", "busy"}
    for when in ("before", "timing"):
        assert found[when]["processors"] >= 1
        assert found[when]["seconds"] > 0
        assert all(value >= 0 for value in found[when].values())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"others": 1.0, "steal": 0.02, "switches": 50.0}, None),
        ({"others": 1.3}, "other programs kept 1.3 of 4 processors busy"),
        ({"steal": 0.06}, "the host of this virtual machine took 6% of its time"),
        ({"switches": 140.2}, "other programs interrupted the measurement 140 times a second"),
    ],
)
def test_above_a_limit_the_reason_is_told(changes: dict, said: str | None) -> None:
    observed = replace(QUIET, **changes)
    assert observed.busy == said
    for pair in ((observed, QUIET), (QUIET, observed)):
        watch = Watch()
        watch.before, watch.timing = pair
        assert watch.record()["busy"] == said
