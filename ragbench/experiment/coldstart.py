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
from pathlib import Path
from typing import Any, NoReturn

from ragbench.base.processes import exit_with_parent
from ragbench.base.types import IndexError_, RagbenchError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.boundary.json import read_json

PEAK_MEMORY = "peak_memory_mb"


def measure(config: Mapping[str, Any], text: str, benchmark: Benchmark) -> Mapping[str, float]:
    """Milliseconds from the first line of a new process to `ready` (index and models open) and to the `first answer`.

    The process reads the artefacts of the benchmark, which must be on this machine, and not its documents, as a search
    that starts does. `peak_memory_mb` is the largest resident set of that process, in MiB. Raises RagbenchError.
    """
    specification = {"config": config, "text": text, "collection": benchmark.collection}
    times = {document.docno: document.modified for document in benchmark.documents}
    process = subprocess.run(
        [sys.executable, "-P", "-m", "ragbench.experiment.coldstart"],
        input=f"{json.dumps({**specification, 'parent': os.getpid(), 'path': sys.path})}\n{json.dumps(times)}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        reason = (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        raise RagbenchError(reason)
    answer: Mapping[str, float] = read_json(process.stdout.splitlines()[-1], own=True)
    return answer


def main() -> None:
    """Answer the query on standard input and print the times."""
    started = time.perf_counter()
    request = read_json(sys.stdin.readline(), own=True)
    exit_with_parent(request["parent"])
    sys.path += [entry for entry in request["path"] if entry not in sys.path]
    from ragbench.config.settings import Settings
    from ragbench.index.artefacts import ArtefactStore
    from ragbench.index.index import Index
    from ragbench.models.resolve import Models
    from ragbench.search.engine.answer import answer

    settings = Settings("cold", request["config"])
    models = Models(threads=settings.latency.threads)
    store = ArtefactStore(settings.index_folder)
    index = Index(
        *(settings.index, request["collection"], _no_documents, store, models),
        times=lambda: read_json(sys.stdin.readline(), own=True),
    )
    index.prepare(settings.pipeline.needs)
    ready = time.perf_counter()
    answer(request["text"], settings.pipeline, index, top_n=10)
    answered = time.perf_counter()
    times = {"ready": (ready - started) * 1e3, "first answer": (answered - started) * 1e3}
    print(json.dumps({**times, PEAK_MEMORY: peak_memory_bytes() / 2**20}))


def _no_documents() -> NoReturn:
    raise IndexError_("an index artefact is missing or damaged")


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
    try:
        main()
    except RagbenchError as error:
        raise SystemExit(str(error)) from None
