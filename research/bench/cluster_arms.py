"""How much faster two Dask workers on this machine compute arms than one process, and what limits that.

    python -m research.bench.cluster_arms [workers=2] [OVERRIDE ...]

By default 64 arms of the built-in benchmark, whose vectors come with ragbench; other overrides are those of
`ragbench run -m`. Every execution is measured in a process of its own, after one that fills the caches. `serial` is the
time of the command that workers do not take: imports, reading, the plan and the verdicts. `start` is that of the
workers: Python, Java, the model. `arms` is the rest: search, which workers do, and evaluation, which the command does
meanwhile. Prints both executions, with the CPU time of the command and of its workers, and from how many seconds of
arms on the workers pay by 1.6.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

ARMS = ("exp=baseline", "fuse.k=10,20,40,60", "dense.depth=50,100", "lexical.depth=50,100", "p12=on,off", "p3=on,off")
AROUND = ("latency.enabled=false", "tracking.enabled=false", "split=all")
GOAL = 1.6


class StartOfArms(logging.Handler):
    """Notes when the workers of a run are ready."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.at: float | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Note the time of the message that says so."""
        if record.getMessage().startswith("computing with"):
            self.at = time.time()


def measured(words: Sequence[str]) -> dict[str, float]:
    """The seconds of a run in this process, by part: by the clock, and of CPUs."""
    from ragbench.config import composition
    from ragbench.config.settings import ArmBuilder
    from ragbench.experiment import run
    from ragbench.experiment.run import Run, plan
    from ragbench.results import measurements, store

    began = psutil.Process().create_time()
    settings = composition.sweep(list(words))
    benchmark = settings[0].benchmark()
    planned = plan(settings, "run", ArmBuilder.of(settings[0], benchmark))
    ready = StartOfArms()
    logging.getLogger("ragbench").addHandler(ready)
    logging.getLogger("ragbench").setLevel(logging.INFO)
    with store.writing(planned.results, "run", "arms", planned.digest, list(planned.arms), None) as folder:
        progress = Run(planned, folder, measurements.against_first)
        start = time.time()
        run.measure_quality(progress)
        end = time.time()
        run.judge(progress)
    own, workers = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    whole, arms = time.time() - began, end - (ready.at or start)
    return {
        "number": float(len(settings)),
        "whole": whole,
        "serial": whole - (end - start),
        "start": (ready.at or start) - start,
        "arms": arms,
        "CPU of the command": own.ru_utime + own.ru_stime,
        "CPU of workers": workers.ru_utime + workers.ru_stime,
    }


def in_a_process(words: Sequence[str]) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "research.bench.cluster_arms", "--measure", *words]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SystemExit(answer.stderr)
    seconds: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return seconds


def main(words: Sequence[str]) -> None:
    """Measure and print both executions."""
    if words[:1] == ["--measure"]:
        print(json.dumps(measured(words[1:])))
        return
    count = int(next((word.partition("=")[2] for word in words if word.startswith("workers=")), "2"))
    arms = [word for word in words if not word.startswith("workers=")] or ARMS
    kinds = {"local": ["execution=local"], "dask": ["execution=dask", f"execution.workers={count}"]}
    with tempfile.TemporaryDirectory() as temporary:
        shared = [f"paths.{name}={Path(temporary) / name}" for name in ("index", "cache")]
        in_a_process([*arms, *AROUND, *shared, f"paths.results={Path(temporary) / 'first'}"])
        found = {
            kind: in_a_process([*arms, *AROUND, *shared, *how, f"paths.results={Path(temporary) / kind}"])
            for kind, how in kinds.items()
        }
    local, dask = found["local"], found["dask"]
    names = list(local)[1:]
    print(f"{local['number']:.0f} arms, {count} workers, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; seconds")
    print(f"| execution | {' | '.join(names)} |\n|---|{'---:|' * len(names)}")
    for kind, seconds in found.items():
        print(f"| {kind} | {' | '.join(f'{seconds[name]:.1f}' for name in names)} |")
    print(f"whole {local['whole'] / dask['whole']:.2f} times as fast, arms {local['arms'] / dask['arms']:.2f}")
    # GOAL (serial + start + arms / count) = serial + arms, if the arms are divided without a loss
    least = (GOAL * (dask["serial"] + dask["start"]) - local["serial"]) / (1 - GOAL / count)
    print(f"the whole can be {GOAL} times as fast from {least:.0f} s of arms on one process on")


if __name__ == "__main__":
    main(sys.argv[1:])
