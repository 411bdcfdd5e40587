"""The first query of a fresh process, in time and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragbench.base.types import RagbenchError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.experiment import coldstart
from ragbench.index.index import Index
from tests.naming import naming


@pytest.mark.slow
def test_cold_start_times_and_memory_of_its_own_process(
    workplace: Path, index: Index, benchmark_small: Benchmark
) -> None:
    settings = composition.compose([f"paths.results={workplace}", "dense=null"])
    index.prepare(settings.pipeline.needs)
    # What this process holds is not counted.
    ballast = bytearray(600 << 20)
    result = coldstart.measure(settings.config, "lamps", benchmark_small)
    assert 0 < result["ready"] < result["first answer"]
    assert 50 < result[coldstart.PEAK_MEMORY] < 600
    assert coldstart.peak_memory_bytes() > len(ballast)


def test_cold_start_memory_once_used_stays_in_the_peak() -> None:
    code = (
        "from ragbench.experiment.coldstart import peak_memory_bytes\n"
        "before = peak_memory_bytes()\n"
        "held = bytearray(100 << 20)\n"
        "del held\n"
        "print((peak_memory_bytes() - before) >> 20)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 95 <= int(done.stdout) <= 110


def test_cold_start_reads_artefacts_and_builds_none(tmp_path: Path, benchmark_small: Benchmark) -> None:
    settings = composition.compose([f"paths.results={tmp_path}"])
    with pytest.raises(RagbenchError, check=naming("artefact")):
        coldstart.measure(settings.config, "lamps", benchmark_small)
