"""Whether a busy machine changes decisions about latency: the same arms, timed many times beside busy processes.

    python -m research.bench.busy_decisions --busy 2 --runs 100

Three arms on version 1 of the built-in benchmark: a lexical search, hybrid retrieval, and the lexical search with a
stage that sleeps. Each run times them again, as `Results.time` does, and decides for budgets of half and of twice the
milliseconds that are added on a quiet machine (`--quiet MS,MS`, from a run with `--busy 0`). One line a condition.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace

import numpy as np

import ragbench
from ragbench import Experiment, load_benchmark
from ragbench.evidence.arms import Arms
from ragbench.evidence.cost import cost
from ragbench.evidence.statistics import Contrast

SLEEP_MS = 20.0
ARMS = ("hybrid", "sleeping")
_LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


@ragbench.stage(before="cut")
def sleeping(query, hits):
    """Scores as they are, later."""
    time.sleep(SLEEP_MS / 1000)
    return [hit.score for hit in hits]


def main() -> None:
    """Print how often each decision was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=0, help="number of busy processes beside")
    parser.add_argument("--runs", type=int, default=100, help="number of runs")
    parser.add_argument("--quiet", help="added p95 of both arms on a quiet machine (default: measured here)")
    chosen = parser.parse_args()
    os.chdir(tempfile.mkdtemp())
    lexical = ragbench.pipeline("exp=lexical_only")
    arms = {
        "lexical": lexical,
        "hybrid": ragbench.pipeline("exp=plain_hybrid"),
        "sleeping": ragbench.pipeline("exp=lexical_only", sleeping()),
    }
    benchmark = load_benchmark("builtin", name="builtin_v1", version=1)
    with contextlib.redirect_stderr(io.StringIO()):
        quick = Experiment.arms(arms, benchmark, "latency.cold_start=false", quick=True).run()
    with contextlib.ExitStack() as stack:
        for _ in range(chosen.busy):
            loop = stack.enter_context(subprocess.Popen([sys.executable, "-c", _LOOP]))
            stack.callback(loop.kill)
        found = []
        with contextlib.suppress(KeyboardInterrupt):  # what was measured is printed
            while len(found) < chosen.runs:
                found.append(_timed(quick))
    added = {arm: float(np.median([run[arm].added.p95_ms for run in found])) for arm in ARMS}
    quiet = dict(zip(ARMS, map(float, chosen.quiet.split(",")), strict=True)) if chosen.quiet else added
    for arm in ARMS:
        for times in (0.5, 2.0):
            budget = times * quiet[arm]
            axes = Counter(replace(run[arm], budget_ms=budget).axis for run in found)
            print(
                f"busy {chosen.busy}, {arm}: p95 {added[arm]:+.1f} ms, budget {budget:.1f} ms: "
                + ", ".join(f"{axis} {count}" for axis, count in sorted(axes.items()))
            )
        print(f"  net times in {sum(run[arm].net for run in found)} of {len(found)} runs")


def _timed(quick):
    with contextlib.redirect_stderr(io.StringIO()):
        timed = quick.time()
    times = {name: arm.times for name, arm in Arms.of(timed).arms.items()}
    return {arm: cost(Contrast.of(arm, "lexical"), times, None, 13) for arm in ARMS}


if __name__ == "__main__":
    main()
