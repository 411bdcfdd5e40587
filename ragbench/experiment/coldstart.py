"""Time and memory that a fresh process needs for its first query: `python -m ragbench.experiment.coldstart`.

Reads a configuration from standard input. Memory is measured here because the process of the experiment holds all arms
at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base.errors import RagbenchError
from ragbench.base.fingerprint import plain
from ragbench.base.processes import end_with
from ragbench.boundary.json import read_json

if TYPE_CHECKING:
    from ragbench.config.settings import Settings


PEAK_MEMORY = "peak_memory_mb"


def measure(settings: Settings, text: str) -> Mapping[str, float]:
    """Milliseconds from the first line of a new process to `ready` (index and models open) and to the `first answer`.

    `peak_memory_mb` is the largest resident set of that process, in MiB.
    """
    request = json.dumps({"config": plain(settings.config), "text": text, "parent": os.getpid()})
    done = subprocess.run(
        [sys.executable, "-m", "ragbench.experiment.coldstart"],
        input=request,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RagbenchError(f"the cold start of '{settings.name}' failed: {done.stderr.strip().splitlines()[-1:]}")
    answer: Mapping[str, float] = read_json(done.stdout.splitlines()[-1], own=True)
    return answer


def main() -> None:
    """Answer the query on standard input and print the times."""
    started = time.perf_counter()
    request = read_json(sys.stdin.read(), own=True)
    end_with(request["parent"])
    from ragbench.config.arm_builder import ArmBuilder
    from ragbench.config.benchmark import load
    from ragbench.config.settings import Settings
    from ragbench.models.access import Models
    from ragbench.search.engine.answer import answer

    settings = Settings("cold", request["config"])
    builder = ArmBuilder.of(settings, load(settings.config), say=lambda message: None)
    store = replace(builder.store, remote=None)  # all artefacts are on this machine already
    builder = ArmBuilder(builder.benchmark, store, Models(threads=settings.latency.threads))
    (arm,) = builder.arms([settings])
    arm.index.prepare(arm.pipeline.needs)
    ready = time.perf_counter()
    answer(request["text"], arm.pipeline, arm.index, top_n=10)
    answered = time.perf_counter()
    times = {"ready": (ready - started) * 1e3, "first answer": (answered - started) * 1e3}
    print(json.dumps({**times, PEAK_MEMORY: peak_memory_bytes() / 2**20}))


def peak_memory_bytes() -> int:
    """The peak resident set of this process."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    # Not ru_maxrss: on Linux a new program inherits the peak of the program that started it.
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
