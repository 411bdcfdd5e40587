"""The HTTP service under load: percentiles and errors at 1, 8 and 32 clients, and what HTTP adds to the library call.

python -m pytest research/bench/test_service_load.py --benchmark-only -s

The service is a process of its own, reached over loopback. With one client every query is asked twice in turn, once
by the library in this process and once over HTTP; the clients of the other rows share this process.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ragbench

CLIENTS, SECONDS, WARM = (1, 8, 32), 6.0, 50
LIMIT_MS = 2.0
QUERIES = (
    "how do programs prove their identity",
    "largest file I may send",
    "getUserById",
    "counters",
    "switch traffic between two running versions",
    "QUAY-4012",
)


class Connection:
    """One kept-alive connection that posts searches; it reads no more of HTTP than the service writes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def search(self, query: str) -> tuple[int, bytes]:
        body = json.dumps({"query": query, "top_n": 10}).encode()
        self.writer.write(
            b"POST /search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            % len(body)
            + body
        )
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
        return int(head[9:12]), await self.reader.readexactly(length)


@pytest.fixture
def port(small_bundle: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "ragbench", "serve", str(small_bundle), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline().rpartition(":")[2].split(";")[0].split()[0])
        process.terminate()


async def load(port: int, clients: int) -> tuple[list[float], Counter[int]]:
    """Milliseconds of every request of so many clients, each asking as soon as it has its answer; statuses."""
    times: list[float] = []
    statuses: Counter[int] = Counter()

    async def client(number: int) -> None:
        connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
        for query in itertools.islice(itertools.cycle(QUERIES), number, None):
            if time.perf_counter() > end:
                break
            started = time.perf_counter()
            status, _ = await connection.search(query)
            times.append(1e3 * (time.perf_counter() - started))
            statuses[status] += 1
        connection.writer.close()

    end = time.perf_counter() + SECONDS
    await asyncio.gather(*(client(number) for number in range(clients)))
    return times, statuses


async def in_turns(port: int, small_bundle: Path) -> tuple[list[float], list[float]]:
    """Milliseconds of the same queries by the library and over HTTP, one after the other."""
    library, service = [], []
    with ragbench.load(small_bundle) as loaded:
        connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
        end = time.perf_counter() + SECONDS
        for turn, query in enumerate(itertools.cycle(QUERIES)):
            if time.perf_counter() > end:
                break
            first = time.perf_counter()
            hits = loaded.search(query, 10)
            second = time.perf_counter()
            status, body = await connection.search(query)
            third = time.perf_counter()
            if turn >= WARM:
                library.append(1e3 * (second - first))
                service.append(1e3 * (third - second))
            else:
                assert status == 200
                assert [hit["chunk_id"] for hit in json.loads(body)["hits"]] == [hit.chunk_id for hit in hits]
        connection.writer.close()
    return library, service


def test_service_load(benchmark, port: int, small_bundle: Path) -> None:
    found: dict[int, tuple[list[float], Counter[int]]] = {}

    def measure() -> tuple[list[float], list[float]]:
        gc.collect()
        gc.disable()
        both = asyncio.run(in_turns(port, small_bundle))
        for clients in CLIENTS:
            found[clients] = asyncio.run(load(port, clients))
        gc.enable()
        return both

    library, service = benchmark.pedantic(measure, rounds=1)
    extra = float(np.median(service) - np.median(library))
    print(f"\nlibrary p50 {np.median(library):.2f} ms, over HTTP {np.median(service):.2f} ms, {extra:.2f} ms more")
    print(f"{'clients':>7}{'requests':>10}{'per s':>8}{'p50':>9}{'p95':>9}{'p99':>9}  errors")
    for clients, (times, statuses) in found.items():
        p50, p95, p99 = np.percentile(times, [50, 95, 99])
        errors = sum(count for status, count in statuses.items() if status != 200)
        rate = len(times) / SECONDS
        print(f"{clients:>7}{len(times):>10}{rate:>8.0f}{p50:>9.2f}{p95:>9.2f}{p99:>9.2f}  {errors}")
        benchmark.extra_info[f"{clients} clients"] = {"p50": p50, "p95": p95, "p99": p99, "errors": errors}
        assert errors == 0
    benchmark.extra_info["extra_ms"] = extra
    assert extra <= LIMIT_MS
