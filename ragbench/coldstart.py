"""How long the first query takes in a fresh process: `python -m ragbench.coldstart`, fed a configuration on stdin."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ragbench.errors import RagbenchError
from ragbench.fingerprint import plain

if TYPE_CHECKING:
    from ragbench.configuration import Settings


def measure(settings: Settings, text: str) -> Mapping[str, float]:
    """Milliseconds from a new process's first line to `ready` (index and models open) and to the `first answer`."""
    request = json.dumps({"config": plain(settings.config), "text": text})
    done = subprocess.run(
        [sys.executable, "-m", "ragbench.coldstart"], input=request, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RagbenchError(f"the cold start of '{settings.name}' failed: {done.stderr.strip().splitlines()[-1:]}")
    answer: Mapping[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    """Answer the query on stdin and print the times."""
    started = time.perf_counter()
    request = json.loads(sys.stdin.read())
    from ragbench.benchmark.load import load
    from ragbench.configuration import Settings
    from ragbench.models.access import Models
    from ragbench.workshop import Workshop

    settings = Settings("cold", request["config"])
    workshop = Workshop.of(settings, load(settings.config["data"]), say=lambda message: None)
    workshop = Workshop(workshop.benchmark, workshop.store, Models(threads=settings.latency.threads))
    (arm,) = workshop.arms([settings])
    arm.index.prepare(arm.pipeline.needs)
    ready = time.perf_counter()
    arm.pipeline.search(request["text"], arm.index)
    answered = time.perf_counter()
    print(json.dumps({"ready": (ready - started) * 1e3, "first answer": (answered - started) * 1e3}))


if __name__ == "__main__":
    main()
