"""What one task of `execution=dask` costs beside its work, and what that lets 8, 64 and 256 workers reach.

    python research/bench/cluster_overhead.py [tasks=10000] [chunks=1000000] [rate=83]

Measured: `tasks` empty tasks; tasks that take a shard of texts and return its vectors; writing the vectors of a shard
into the cache of the command's machine. `rate`: chunks that a worker embeds in a second (83: two quiet cores, short
chunks). Simulated from these: shards wait for a worker, and their vectors for the machine of the command, which takes
one after another.
"""

from __future__ import annotations

import heapq
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragbench.extras.cluster.execution import _SHARD
from ragbench.models.store import Store, embedding_key

_DIMENSION = 384
_TEXT = "word " * 150


def shard_of(texts: Sequence[str]) -> NDArray[np.float32]:
    """What embedding a shard returns, without the work."""
    return np.ones((len(texts), _DIMENSION), dtype=np.float32)


def empty(number: int) -> int:
    """A task that does nothing."""
    return number


def seconds_of(function: Callable[..., object], inputs: Sequence[object]) -> float:
    """The seconds of one task, by two workers on this machine."""
    from distributed import Client, LocalCluster, as_completed

    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address="127.0.0.1:0", security=True) as cluster,
        Client(cluster) as client,
    ):
        client.submit(function, inputs[0], pure=False).result()
        began = time.perf_counter()
        for future in as_completed([client.submit(function, each, pure=False) for each in inputs]):
            future.result()
        return (time.perf_counter() - began) / len(inputs)


def seconds_of_keeping(count: int = 200) -> float:
    """The seconds to write the vectors of a shard into a cache."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "embeddings.sqlite", "embeddings")
        vectors = shard_of([""] * _SHARD)
        began = time.perf_counter()
        for number in range(count):
            keys = [embedding_key("digest", f"{number} {row} {_TEXT}") for row in range(_SHARD)]
            store.write({key: vector.tobytes() for key, vector in zip(keys, vectors, strict=True)})
        return (time.perf_counter() - began) / count


def simulated(shards: int, work: float, serial: float, workers: int) -> float:
    """The seconds until all shards are done: `work` on one of the workers, then `serial` on one machine."""
    free, driver = [0.0] * workers, 0.0
    heapq.heapify(free)
    for _ in range(shards):
        ready = heapq.heappop(free) + work
        heapq.heappush(free, ready)
        driver = max(driver, ready) + serial
    return driver


def main(words: Sequence[str] = ()) -> None:
    """Measure and print both tables."""
    given = {key: float(value) for key, value in (word.split("=") for word in words)}
    tasks, chunks, rate = int(given.get("tasks", 10_000)), int(given.get("chunks", 1_000_000)), given.get("rate", 83.0)
    nothing = seconds_of(empty, range(tasks))
    moving = seconds_of(
        shard_of, [[f"{number} {row} {_TEXT}" for row in range(_SHARD)] for number in range(tasks // 10)]
    )
    keeping = seconds_of_keeping()
    print(
        f"an empty task {nothing * 1e3:.2f} ms, a shard there and back {moving * 1e3:.2f} ms, "
        f"kept {keeping * 1e3:.2f} ms"
    )
    shards, work, serial = -(-chunks // _SHARD), _SHARD / rate, moving + keeping
    alone = shards * work
    print("| workers | minutes | times as fast as one |\n|---:|---:|---:|")
    for workers in (1, 2, 8, 64, 256, 1024):
        took = simulated(shards, work, serial, workers)
        print(f"| {workers:,} | {took / 60:.0f} | {alone / took:.1f} |")
    print(
        f"more than {work / serial:.0f} workers do not help: "
        f"the machine of the command takes {1 / serial:.0f} shards a second"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
