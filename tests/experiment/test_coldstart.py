"""The first query of a fresh process, in time and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragbench.base.errors import RagbenchError
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.experiment import coldstart

VAULT = Path(__file__).parents[1] / "data" / "vault"


def test_times_and_memory_of_its_own_process(workplace: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("text\nlamps\n")
    settings = composition.compose(
        [
            *("data=vault", f"data.corpus={VAULT}", f"data.queries={tmp_path / 'queries.csv'}"),
            *(f"paths.results={workplace}", "dense=null"),
        ]
    )
    # What this process holds is not counted.
    ballast = bytearray(600 << 20)
    found = coldstart.measure(settings, "lamps", load(settings.config).collection)
    assert 0 < found["ready"] < found["first answer"]
    assert 50 < found[coldstart.PEAK_MEMORY] < 600
    assert coldstart.peak_memory_bytes() > len(ballast)


def test_memory_once_used_stays_in_the_peak() -> None:
    code = (
        "from ragbench.experiment.coldstart import peak_memory_bytes\n"
        "before = peak_memory_bytes()\n"
        "held = bytearray(100 << 20)\n"
        "del held\n"
        "print((peak_memory_bytes() - before) >> 20)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 95 <= int(done.stdout) <= 110


def test_a_cold_start_that_fails_names_the_arm(tmp_path: Path) -> None:
    settings = composition.compose(["data=vault", f"data.corpus={tmp_path / 'absent'}", "name=lost"])
    with pytest.raises(RagbenchError, match="the cold start of 'lost' failed"):
        coldstart.measure(settings, "lamps", "0" * 64)
