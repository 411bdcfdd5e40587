"""From measured rows to the tables of docs/research/scaling.md: measurements, growth, extrapolation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Rows = Mapping[str, Mapping[str, Any]]

# Assumptions of the model, all in one place.
MACHINE_GB, MACHINE_CORES, MACHINE_DISK_GB, MACHINE_USD_HOUR = 128, 32, 3000, 1.60
USABLE = 0.75  # of a machine's memory and disk
LEXICAL_HOT = 1.0  # of the Lucene files that must be in the page cache
IVF_BYTES = 384 + 8 + 16  # codes, ids and the cell centres' share, in memory, for every chunk
BUDGET_MS = 20.0  # of a hybrid query beside the model


def report(rows: Rows, note: str) -> str:
    """Markdown."""
    sizes = sorted({int(key.split()[0]) for key in rows})
    complete = [size for size in sizes if f"{size} flat" in rows]
    parts = [note, _builds(rows, complete), _queries(rows, complete), _structures(rows, complete)]
    if len(complete) > 1:
        parts += [_exponents(rows, complete), _changes(rows, complete), _larger(rows, complete)]
    return "\n\n".join(part for part in parts if part)


def _builds(rows: Rows, sizes: Sequence[int]) -> str:
    head = (
        "chunks",
        "documents",
        "workers",
        "parse, chunk s",
        "words s",
        "embed s",
        "structure s",
        "peak MB",
        "largest worker MB",
        "tables MB",
        "words MB",
        "vectors MB",
        "structure MB",
    )
    body = []
    for size in sizes:
        for workers in (1, 2):
            row = rows[f"{size} build {workers}"]
            seconds, held = row["seconds"], row["bytes"]
            vectors = f"{seconds['embedding']:.1f}" + ("" if row["real"] else " (synthetic)")
            body.append(
                (
                    f"{row['chunks']:,}",
                    f"{row['documents']:,}",
                    workers,
                    f"{seconds['chunks']:.1f}",
                    f"{seconds['lexical']:.1f}",
                    vectors,
                    f"{seconds['dense'] - seconds['embedding']:.1f}",
                    f"{row['peak_mb']:.0f}",
                    f"{row['worker_peak_mb']:.0f}",
                    *(f"{held[name] / 1e6:.1f}" for name in ("chunks", "lexical", "vectors", "structure")),
                )
            )
    return "### Building\n\n" + _table(head, body)


def _queries(rows: Rows, sizes: Sequence[int]) -> str:
    head = ("chunks", "words ms", "dense ms", "hybrid ms", "model ms", "R@10", "MB")
    body = []
    for size in sizes:
        row = rows[f"{size} ask"]
        times = (_times_text(row[name]) for name in ("lexical", "dense", "hybrid", "model"))
        kind = rows[f"{size} build 1"]["kind"]
        body.append((f"{row['chunks']:,} ({kind})", *times, f"{row['recall']:.3f}", f"{row['peak_mb']:.0f}"))
    text = (
        "Milliseconds are p50 / p95 of wall-clock time, with p95 of CPU time in brackets, which other programs do "
        "not change. Hybrid is the default pipeline without re-ranking, excluding the model; R@10 is that of "
        "`kind=auto`."
    )
    return f"### Query latency\n\n{text}\n\n{_table(head, body)}"


def _structures(rows: Rows, sizes: Sequence[int]) -> str:
    head = ("chunks", "structure", "build s", "peak MB", "extra MB", "ms", "R@10")
    body = []
    for size in sizes:
        for kind in ("flat", "hnsw", "ivf_sq8"):
            if (row := rows.get(f"{size} {kind}")) is not None:
                held = f"{row['bytes'] / 1e6:.1f}"
                cells = (
                    kind,
                    f"{row['seconds']:.1f}",
                    f"{row['peak_mb']:.0f}",
                    held,
                    _times_text(row["ms"]),
                    f"{row['recall']:.3f}",
                )
                body.append((f"{rows[f'{size} build 1']['chunks']:,}", *cells))
    return "### ANN indexes over the same vectors\n\n" + _table(head, body)


_GROWTH: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], float]]] = {
    "parse and chunk, s": ("build 1", lambda row: row["seconds"]["chunks"]),
    "words, s": ("build 1", lambda row: row["seconds"]["lexical"]),
    "tables, bytes": ("build 1", lambda row: row["bytes"]["chunks"]),
    "words, bytes": ("build 1", lambda row: row["bytes"]["lexical"]),
    "peak of the build, MB": ("build 1", lambda row: row["peak_mb"]),
    "words, p50 ms": ("ask", lambda row: row["lexical"]["p50"]),
    "flat, p50 ms": ("flat", lambda row: row["ms"]["p50"]),
    "hnsw, p50 ms": ("hnsw", lambda row: row["ms"]["p50"]),
    "hnsw, build s": ("hnsw", lambda row: row["seconds"]),
    "ivf_sq8, p50 ms": ("ivf_sq8", lambda row: row["ms"]["p50"]),
    "ivf_sq8, build s": ("ivf_sq8", lambda row: row["seconds"]),
}


def _points(rows: Rows, sizes: Iterable[int], name: str) -> list[tuple[float, float]]:
    """(chunks, value) of the three largest rows: the smallest would measure what starting takes."""
    part, value = _GROWTH[name]
    found = [(size, rows.get(f"{size} {part}")) for size in sizes]
    return [(rows[f"{size} build 1"]["chunks"], value(row)) for size, row in found if row is not None][-3:]


def _law(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(a, b) of value = a n^b by least squares of the logarithms."""
    n, values = np.log(np.array(points)).T
    slope, intercept = np.polyfit(n, values, 1)
    return math.exp(intercept), float(slope)


def _exponents(rows: Rows, sizes: Sequence[int]) -> str:
    """Fitted to the largest rows; and the check: fitted without the very largest, how far off is that one?"""
    body = []
    for name in _GROWTH:
        points = _points(rows, sizes, name)
        if len(points) < 2:
            continue
        checked = "-"
        if len(points) > 2:
            a, b = _law(points[:-1])
            checked = f"{a * points[-1][0] ** b / points[-1][1]:.2f} at {points[-1][0]:,}"
        body.append((name, f"{_law(points)[1]:.2f}", checked))
    head = ("quantity", "exponent", "largest row: prediction from the smaller ones / measured")
    return "### Growth: value = a n^b, fitted to the three largest rows\n\n" + _table(head, body)


def _changes(rows: Rows, sizes: Sequence[int]) -> str:
    def reaches(name: str, limit: float) -> str:
        points = _points(rows, sizes, name)
        if len(points) < 2:
            return "not measured"
        a, b = _law(points[-2:])
        chunks = (limit / a) ** (1 / b) if b > 0.05 else math.inf
        return f"{_rounded(chunks):,}" if chunks < 1e9 else "above a thousand million, by these rows"

    per_vector = 384 * 4 + 32 * 8 + 80
    body = [
        ("flat", "its p50 reaches 3 ms", reaches("flat, p50 ms", 3), "hnsw"),
        ("flat", f"its p50 takes half of {BUDGET_MS:g} ms", reaches("flat, p50 ms", BUDGET_MS / 2), "hnsw"),
        ("hnsw", "one thread builds for 10 minutes", reaches("hnsw, build s", 600), "ivf_sq8"),
        ("hnsw", "16 GB of memory", f"{_rounded(16e9 / per_vector):,}", "ivf_sq8"),
        ("ivf_sq8", "16 GB of memory", f"{_rounded(16e9 / IVF_BYTES):,}", "several machines"),
        ("words in one segment", "p50 takes half of the budget", reaches("words, p50 ms", BUDGET_MS / 2), "partitions"),
    ]
    return "### When to change the index\n\n" + _table(("structure", "when", "chunks", "then"), body)


def _larger(rows: Rows, sizes: Sequence[int]) -> str:
    largest = rows[f"{sizes[-1]} build 1"]
    n = largest["chunks"]
    real = [rows[f"{size} build 1"] for size in sizes if rows[f"{size} build 1"]["real"]]
    embed = min((row["seconds"]["embedding"] / row["chunks"] * 2 for row in real), default=math.nan)  # two cores
    parsed = rows[f"{max(s for s in sizes if s <= 100_000)} build 1"]
    read = parsed["seconds"]["chunks"] / parsed["chunks"]
    body = []
    for target in (10_000_000, 1_000_000_000):
        scale = target / n
        lexical, tables = (largest["bytes"][part] * scale / 1e9 for part in ("lexical", "chunks"))
        vectors, codes = target * 1536 / 1e9, target * IVF_BYTES / 1e9
        memory, disk = codes + LEXICAL_HOT * lexical, lexical + tables + vectors + codes
        machines = max(math.ceil(memory / MACHINE_GB / USABLE), math.ceil(disk / MACHINE_DISK_GB / USABLE))
        hours = target * (embed + read + largest["seconds"]["lexical"] / n) / 3600
        each = target / machines
        asked = " + ".join(
            f"{_law(points)[0] * each ** _law(points)[1]:.0f}"
            for name in ("words, p50 ms", "ivf_sq8, p50 ms")
            if len(points := _points(rows, sizes, name)) > 1
        )
        body.append(
            (
                f"{target:,}",
                f"{memory:,.0f}",
                f"{disk:,.0f}",
                machines,
                f"{each:,.0f}",
                asked,
                f"{hours:,.0f}",
                f"{hours / MACHINE_CORES / machines:,.1f}",
                f"{hours / MACHINE_CORES * MACHINE_USD_HOUR:,.0f}",
                f"{machines * MACHINE_USD_HOUR * 730:,.0f}",
            )
        )
    head = (
        "chunks",
        "memory GB",
        "disk GB",
        "machines",
        "chunks on each",
        "words + dense p50 ms",
        "core hours to build",
        "hours to build",
        "build USD",
        "USD a month",
    )
    assumed = (
        f"A machine: {MACHINE_CORES} cores, {MACHINE_GB} GB, {MACHINE_DISK_GB} GB of local disk, "
        f"{MACHINE_USD_HOUR:.2f} USD an hour; {USABLE:.0%} of memory and disk usable; no replicas (double it for one); "
        f"vectors in one byte for each component, {IVF_BYTES} bytes for each chunk in memory; "
        "the Lucene files in the page cache; "
        f"vectors and tables on disk. Embedding takes {embed * 1000:.0f} CPU milliseconds for each chunk, "
        f"parsing and chunking {read * 1000:.1f}. Bytes grow in proportion to the largest row, "
        "milliseconds by the fitted exponents, and partitions are searched in parallel."
    )
    check = [
        (size, sum(rows[f"{size} build 1"]["bytes"][p] for p in ("chunks", "lexical", "vectors"))) for size in sizes
    ]
    per = [held / rows[f"{size} build 1"]["chunks"] for size, held in check]
    told = (
        f"Check: {' , '.join(f'{each:,.0f}' for each in per)} bytes for each chunk in the rows above, smallest first."
    )
    return f"### Extrapolation to ten million and a billion\n\n{assumed}\n\n{_table(head, body)}\n\n{told}"


def _times_text(times: Mapping[str, float]) -> str:
    return f"{times['p50']:.2f} / {times['p95']:.2f} ({times['cpu95']:.2f})"


def _rounded(number: float) -> int:
    digits = max(0, math.floor(math.log10(number)) - 1)
    return round(number / 10**digits) * 10**digits


def _table(head: Sequence[object], body: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
