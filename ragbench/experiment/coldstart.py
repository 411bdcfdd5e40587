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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base.errors import RagbenchError
from ragbench.base.fingerprint import plain
from ragbench.base.processes import end_with
from ragbench.boundary.json import read_json

if TYPE_CHECKING:
    from ragbench.base.types import Document
    from ragbench.config.settings import Settings


PEAK_MEMORY = "peak_memory_mb"


def measure(settings: Settings, text: str, collection: str) -> Mapping[str, float]:
    """Milliseconds from the first line of a new process to `ready` (index and models open) and to the `first answer`.

    `collection` is the digest of the documents, whose artefacts are on this machine: a search that starts reads those,
    not the documents. `peak_memory_mb` is the largest resident set of that process, in MiB.
    """
    request = json.dumps(
        {"config": plain(settings.config), "text": text, "collection": collection, "parent": os.getpid()}
    )
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
    from ragbench.config.settings import Settings
    from ragbench.index.artefacts import ArtefactStore
    from ragbench.index.index import Index
    from ragbench.models.access import Models
    from ragbench.search.engine.answer import answer

    settings = Settings("cold", request["config"])
    models = Models(threads=settings.latency.threads)
    store = ArtefactStore(settings.index_folder)
    index = Index(settings.index, request["collection"], lambda: _documents(settings), store, models)
    index.prepare(settings.pipeline.needs)
    ready = time.perf_counter()
    answer(request["text"], settings.pipeline, index, top_n=10)
    answered = time.perf_counter()
    times = {"ready": (ready - started) * 1e3, "first answer": (answered - started) * 1e3}
    print(json.dumps({**times, PEAK_MEMORY: peak_memory_bytes() / 2**20}))


def _documents(settings: Settings) -> Sequence[Document]:
    """The documents, to build what is missing."""
    from ragbench.config.benchmark import load

    return load(settings.config).documents


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
