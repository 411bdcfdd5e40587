"""What it costs that results survive kills and flipped bits, as a share of a warm `ragbench run`.

python -m pytest research/bench/test_crash_safety.py --benchmark-only -s

Counted is the time inside everything that a run without such care would leave out: flushing files and folders to the
disk, digests of what was written and read, seals, and the lock of a folder. MLflow is off, as its database has its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragbench.base import files
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.results import store

SHARE = 0.03
CARE = ((files, "flush"), (files, "digest"), (files, "require"), (files, "_seal"), (store, "_lock"))


class Clock:
    """The seconds inside the functions it watches, nested calls counted once."""

    def __init__(self) -> None:
        self.seconds, self.calls, self._inside = 0.0, 0, False

    def watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            if self._inside:
                return function(*arguments, **named)
            self._inside, started = True, time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.perf_counter() - started
                self.calls, self._inside = self.calls + 1, False

        return watched


def test_it_costs_little(benchmark, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = composition.compose([])
    words = ["run", "-m", "exp=baseline,recommended", "split=test", "tracking.enabled=false", "--quiet"]
    words += [f"paths.index={here.index_folder}", f"paths.cache={here.cache_folder}", f"paths.results={tmp_path}"]
    assert cli.main(words) == 0  # warms artefacts, caches and imports
    clock = Clock()
    for module, name in CARE:
        monkeypatch.setattr(module, name, clock.watch(getattr(module, name)))
    started = time.perf_counter()
    assert benchmark.pedantic(cli.main, args=(words,), rounds=1) == 0
    seconds = time.perf_counter() - started
    print(f"\n{clock.calls} calls, {clock.seconds:.3f} of {seconds:.2f} s: {clock.seconds / seconds:.2%}")
    assert clock.calls > 10
    assert clock.seconds < SHARE * seconds
