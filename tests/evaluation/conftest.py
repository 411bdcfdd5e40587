"""A clock that tests move, so that no result of theirs depends on what else the machine does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ragbench.base.types import QueryState
from ragbench.evaluation import latency, open_loop


class Clock:
    """Stands still until something sleeps or a stage takes its time."""

    def __init__(self) -> None:
        self.now_ns = 0

    def perf_counter_ns(self) -> int:
        return self.now_ns

    def perf_counter(self) -> float:
        return self.now_ns / 1e9

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(latency, "time", made)
    monkeypatch.setattr(open_loop, "time", made)
    return made


@pytest.fixture
def takes(clock: Clock, idle: type) -> type:
    """A stage that takes as many seconds of the clock."""

    @dataclass(frozen=True)
    class Takes(idle):  # type: ignore[misc]
        seconds: float

        def __call__(self, states: Sequence[QueryState], index: Any) -> list[QueryState]:
            clock.sleep(self.seconds)
            return list(states)

    return Takes
