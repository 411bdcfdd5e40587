"""What a lexical search costs at 20,000 chunks of about 130 words, crossing into Java and back included.

python -m pytest research/bench/test_lexical_speed.py --benchmark-only -s
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from ragbench.index.lexical import Bm25F, LexicalIndex, LexicalSpec, build_lexical

N_CHUNKS, N_QUERIES, DEPTH, WARM_UP = 20_000, 300, 100, 600
CONTENT = Bm25F()
FIELDS = Bm25F((("content", 1.0), ("title", 3.0), ("headers", 2.5), ("tags", 2.0)))


@pytest.fixture(scope="module")
def chunks() -> list[list[str]]:
    """Words after Zipf and Mandelbrot; the most frequent one is in half of the chunks, as a product's name might be."""
    chance = np.random.default_rng(1)
    syllables = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]
    words = sorted({"".join(chance.choice(syllables, size=chance.integers(2, 5))) + "x" for _ in range(30_000)})
    chance.shuffle(words)
    odds = 1 / (20 + np.arange(len(words)))
    lengths = chance.integers(60, 201, size=N_CHUNKS)
    drawn = np.array(words)[chance.choice(len(words), size=lengths.sum(), p=odds / odds.sum())].tolist()
    ends = np.cumsum(lengths).tolist()
    return [drawn[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


@pytest.fixture(scope="module")
def queries(chunks: list[list[str]]) -> list[str]:
    chance = np.random.default_rng(2)
    picked = [chunks[number] for number in chance.integers(0, N_CHUNKS, size=N_QUERIES)]
    return [" ".join(chance.choice(words, size=chance.integers(3, 11)).tolist()) for words in picked]


@pytest.fixture(scope="module", params=[CONTENT, FIELDS], ids=["content", "four fields"])
def index(
    request: pytest.FixtureRequest, chunks: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> LexicalIndex:
    def rows() -> Iterator[Mapping[str, str]]:
        for words in chunks:
            parts = {"content": words, "title": words[:4], "headers": words[4:12], "tags": words[12:14]}
            yield {name: " ".join(part) for name, part in parts.items()}

    folder: Path = tmp_path_factory.mktemp("lexical")
    spec = LexicalSpec(tuple(name for name, _ in request.param.weights))
    start = time.perf_counter()
    build_lexical(folder, spec, rows())
    print(f"\nbuild {time.perf_counter() - start:.1f} s", end="")
    return LexicalIndex(folder, spec, request.param)


@pytest.mark.parametrize("share", [None, 0.5, 0.01], ids=["all", "half", "one in 100"])
def test_search(benchmark, index: LexicalIndex, queries: list[str], share: float | None) -> None:
    allowed = None if share is None else np.random.default_rng(3).random(N_CHUNKS) < share
    for number in range(WARM_UP):  # Java compiles what it has seen often
        index.search(queries[number % N_QUERIES], DEPTH, allowed)
    wall_ms: list[float] = []
    processor_ms: list[float] = []

    def ask(query: str) -> None:
        wall, processor = time.perf_counter(), time.thread_time()
        ranking = index.search(query, DEPTH, allowed)
        wall_ms.append((time.perf_counter() - wall) * 1000)
        processor_ms.append((time.thread_time() - processor) * 1000)
        assert len(ranking) <= DEPTH and (allowed is None or allowed[ranking.chunks].all())

    asked = iter(queries)
    benchmark.pedantic(ask, setup=lambda: ((next(asked),), {}), rounds=N_QUERIES)
    for name, values in (("wall", wall_ms), ("processor", processor_ms)):
        p50, p95, p99 = np.percentile(values, [50, 95, 99])
        benchmark.extra_info.update({f"{name}_p50_ms": p50, f"{name}_p95_ms": p95})
        print(f"\n{name:>10} p50 {p50:.2f} ms, p95 {p95:.2f} ms, p99 {p99:.2f} ms", end="")
