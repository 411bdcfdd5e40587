"""How busy the machine is while time is measured: on a busy one, times depend on other programs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_BEFORE_S = 0.25
"""Seconds for which the machine is observed before timing, while this process is idle."""
_MOST_OTHERS = 0.25
"""Share of the CPUs that other programs may use."""
_MOST_STEAL = 0.02
"""Share of its time that the host of a virtual machine may take away."""
_MOST_SWITCHES = 50.0
"""Involuntary context switches of this process in a second; there are hundreds if another process wants its
CPU."""
_SLICE_S = 0.003
"""What an involuntary context switch may cost: Linux's scheduler lets another process run for about this long."""
WAITED = "waited"
"""The column of the milliseconds that a query waited for a CPU which other programs used."""


@dataclass(frozen=True)
class _MachineState:
    """The machine over some seconds.

    `load`: the load average of the last minute, this process included. `others`: CPUs that other processes kept
    busy. `steal`: share of all CPUs' time that the host took. `switches`: involuntary context switches of this
    process in a second. The CPU count comes last.
    """

    seconds: float
    load: float
    others: float
    steal: float
    switches: float
    processors: int

    @property
    def busy(self) -> str | None:
        """Why times cannot be trusted, None when they can."""
        if self.others > _MOST_OTHERS * self.processors:
            return f"other programs kept {self.others:.1f} of {self.processors} CPUs busy"
        if self.steal > _MOST_STEAL:
            return f"the host of this virtual machine took {self.steal:.0%} of its time"
        if self.switches > _MOST_SWITCHES:
            return f"other programs interrupted the measurement {self.switches:.0f} times a second"
        return None


def share_lost(state: Mapping[str, Any]) -> float:
    """The share of its time that this process lost to others, by a recorded `_MachineState`: 0 to 1.

    What the host took, and a slice of the scheduler for every involuntary switch.
    """
    return min(1.0, float(state.get("steal", 0.0)) + _SLICE_S * float(state.get("switches", 0.0)))


def waited_ms() -> float:
    """Milliseconds for which this thread was ready to run and waited for a CPU, since it began.

    From the kernel's scheduler statistics; 0 if the system has none (only Linux reports them).
    """
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as statistics:  # noqa: PTH123 - read for every query
            return int(statistics.read().split()[1]) / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0


class Watch:
    """`with Watch() as watch:` observes the machine just before and during a block of timing."""

    def __enter__(self) -> Watch:
        first = _Counters()
        time.sleep(_BEFORE_S)
        self._start = _Counters()
        self.before = self._start.since(first)
        return self

    def __exit__(self, *_: object) -> None:
        self.timing = _Counters().since(self._start)

    def record(self) -> dict[str, Any]:
        """Both observations and `busy`: why times cannot be trusted, None when they can."""
        reasons = [machine_state.busy for machine_state in (self.before, self.timing) if machine_state.busy]
        return {"before": asdict(self.before), "timing": asdict(self.timing), "busy": reasons[0] if reasons else None}


class _Counters:
    """The counters of the machine and of this process at one moment."""

    def __init__(self) -> None:
        import psutil

        process, times = psutil.Process(), psutil.cpu_times()
        self.time = time.perf_counter()
        self.working = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
        self.steal = float(getattr(times, "steal", 0.0))  # only Linux reports it
        self.this_process = sum(process.cpu_times()[:2])
        self.switches = process.num_ctx_switches().involuntary
        self.load = psutil.getloadavg()[0]
        self.processors = psutil.cpu_count() or 1

    def since(self, earlier: _Counters) -> _MachineState:
        seconds, used_here = self.time - earlier.time, self.this_process - earlier.this_process
        return _MachineState(
            seconds=round(seconds, 3),
            load=round(self.load, 2),
            others=round(max(0.0, self.working - earlier.working - used_here) / seconds, 3),
            steal=round((self.steal - earlier.steal) / (seconds * self.processors), 4),
            switches=round((self.switches - earlier.switches) / seconds, 1),
            processors=self.processors,
        )
