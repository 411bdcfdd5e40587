"""What every switch adds to the latency of a query over 20,000 synthetic chunks: our own code, without the models.

python -m pytest research/bench/test_stage_overhead.py --benchmark-only -s

Random vectors that cost nothing stand for the encoder, so that what is timed is searching, fusing and filtering; p6
is timed with the real cross-encoder, against the bare time of its pairs. All arms answer every query in turn, in a new
order each time; the extra time of an arm is the difference of the 95th percentiles.
"""

from __future__ import annotations

import gc
import hashlib
import random
import time
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pytest

from ragbench.base.types import Document, Query
from ragbench.config import composition
from ragbench.corpus.links import resolve_links
from ragbench.corpus.reader import parse_document
from ragbench.evaluation.latency import time_query
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index
from ragbench.models.resolve import CrossEncoderSpec, Models
from ragbench.search.engine.pipeline import Arm, start

N_CHUNKS, N_DOCUMENTS, N_QUERIES, ROUNDS, DIM = 20_000, 2_000, 60, 3, 384
LIMIT_MS, RERANK_FACTOR = 5.0, 1.15
SWITCHES = (
    *(f"p{n}=on" for n in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13)),
    "graph=on",
    "community=on",
    "recency=on",
    "dynamic_weights=on",
    "calibration=table",
    "filters=on filters.tags=[area1]",
    "expansion=on recall=on rank_v3=on",
    "folder_boost=on graph_boost=on normalise=on diverse=on",
    "merge=on",
    "average=on",
    "guarantee=on",
    "context=on keywords=on",
    "index.lexical.analyzer=technical",
    "+exp=all p6=off",
)


class RandomVectors:
    """A unit vector for every text, always the same one; near texts are not near vectors."""

    name, dim, max_tokens, weights = "random", DIM, 512, {}
    digest = passage_digest = "random vectors"

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        rows = [self._one(text) for text in texts]
        return np.stack(rows) if rows else np.empty((0, DIM), np.float32)

    def encode_passages(self, texts: Sequence[str], progress=None) -> np.ndarray:
        return self.encode_queries(texts)

    def _one(self, text: str) -> np.ndarray:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        vector = np.random.Generator(np.random.SFC64(seed)).standard_normal(DIM, dtype=np.float32)
        return vector / np.linalg.norm(vector)


class WithoutEncoder(Models):
    """Random vectors instead of the encoder, the real cross-encoder."""

    def encoder(self, spec):
        return RandomVectors()


class Writer:
    """Writes documents of pseudo-words by Zipf's law, with links, tags, code and copied passages."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
        self.words = ["".join(self.chance.choices(syllables, k=self.chance.randint(2, 4))) for _ in range(8_000)]
        self.copies: list[str] = []

    @cached_property
    def _cumulative(self) -> list[float]:
        return np.cumsum(1 / np.arange(1, len(self.words) + 1)).tolist()

    def some(self, n: int) -> list[str]:
        return self.chance.choices(self.words, cum_weights=self._cumulative, k=n)

    def passage(self) -> str:
        if self.copies and self.chance.random() < 0.1:
            text = self.chance.choice(self.copies)
            return text if self.chance.random() < 0.5 else text + " " + " ".join(self.some(4))
        text = " ".join(self.some(130)) + "."
        self.copies.append(text)
        return text

    def document(self, number: int) -> Document:
        a, b = self.some(2)
        parts = [
            f"---\ntitle: {a} {b}\ntags: [area{number % 7}/{a}]\nkeywords: [{b}]\nauthor: Author {number % 50}\n---\n"
        ]
        for section in range(10):
            parts.append(f"## {' '.join(self.some(3))}\n\n{self.passage()}\n")
            if section % 5 == 0:
                verb, noun = self.some(2)
                parts.append(f"```python\ndef {verb}{noun.title()}({a}): return {b}\n```\n")
        parts.append(" ".join(f"[[d{self.chance.randrange(N_DOCUMENTS)}]]" for _ in range(4)))
        raw = "\n".join(parts).encode()
        return parse_document(f"d{number}", f"d{number}.md", raw, modified=1.7e9 + 3600.0 * number)[0]

    def query(self, number: int) -> Query:
        words = self.some(self.chance.randint(2, 8))
        verb, noun = self.some(2)
        return Query(f"q{number}", f"{verb}{noun.title()}" if number % 5 == 0 else " ".join(words))


@pytest.fixture(scope="module")
def documents() -> tuple[Document, ...]:
    writer = Writer(13)
    made, _ = resolve_links([writer.document(number) for number in range(N_DOCUMENTS)])
    return tuple(made)


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    writer = Writer(13)
    return [writer.query(number) for number in range(N_QUERIES)]


@pytest.fixture(scope="module")
def arms(documents, tmp_path_factory: pytest.TempPathFactory) -> list[Arm]:
    store = ArtefactStore(tmp_path_factory.mktemp("index"))
    indexes: dict[str, Index] = {}
    made = []
    for switch in ("", *SWITCHES, "p6=on"):
        settings = composition.compose(switch.split())
        key = repr(settings.index)
        if key not in indexes:
            indexes[key] = Index(settings.index, "synthetic", lambda: documents, store, WithoutEncoder(threads=2))
        made.append(Arm(switch or "baseline", settings.pipeline, indexes[key]))
        indexes[key].prepare(settings.pipeline.needs)
    return made


def test_every_switch_but_p6_adds_at_most_five_milliseconds(benchmark, arms: list[Arm], queries: list[Query]) -> None:
    from threadpoolctl import threadpool_limits

    *timed, _ = arms
    assert abs(timed[0].index.chunks.n_retrievable - N_CHUNKS) < 0.1 * N_CHUNKS
    chance = random.Random(13)
    rows: dict[str, list[list[float]]] = {arm.name: [] for arm in timed}

    def measure() -> None:
        gc.collect()
        gc.disable()
        for query in queries * ROUNDS:
            for arm in chance.sample(timed, len(timed)):
                rows[arm.name].append(time_query(arm, query))
        gc.enable()

    with threadpool_limits(limits=1):
        for arm in timed:
            for query in queries[:10]:
                time_query(arm, query)
        benchmark.pedantic(measure, rounds=1)
    times = {arm.name: dict(zip(columns(arm), np.array(rows[arm.name]).T, strict=True)) for arm in timed}
    base = times.pop("baseline")
    print(f"\n{N_CHUNKS} chunks, {N_QUERIES} queries asked {ROUNDS} times, milliseconds, 1 thread")
    print(f"{'switch':<34}{'total p50':>10}{'total p95':>10}{'extra p95':>10}  own stages p95")
    print(f"{'baseline':<34}{np.median(base['total']):>10.2f}{np.percentile(base['total'], 95):>10.2f}")
    extra = {}
    for name, each in times.items():
        own = {stage: np.percentile(ms, 95) for stage, ms in each.items() if stage not in base}
        p50, p95 = np.percentile(each["total"], [50, 95])
        extra[name] = p95 - np.percentile(base["total"], 95)
        stages = ", ".join(f"{stage} {ms:.2f}" for stage, ms in own.items())
        print(f"{name:<34}{p50:>10.2f}{p95:>10.2f}{extra[name]:>10.2f}  {stages}")
    benchmark.extra_info.update({name: float(ms) for name, ms in extra.items()})
    # Sums of many switches are shown, and the scan of all texts has a limit of its own: test_scan_speed.py.
    single = {name: ms for name, ms in extra.items() if "exp=all" not in name and "recall=on" not in name}
    assert {name: ms for name, ms in single.items() if ms > LIMIT_MS} == {}


def columns(arm: Arm) -> list[str]:
    return [*(name for name, _ in arm.pipeline), "total"]


def test_p6_costs_little_more_than_its_pairs(benchmark, arms: list[Arm], queries: list[Query]) -> None:
    rerank = arms[-1]
    model = rerank.index.models.cross_encoder(CrossEncoderSpec())
    place = [name for name, _ in rerank.pipeline].index("p6")
    bare, ours = [], []

    def measure() -> None:
        for query in queries[:20]:
            before = rerank.pipeline.stages[:place]
            states = start([query])
            for _, stage in before:
                states = stage(states, rerank.index)
            passages = [rerank.index.chunks.text(chunk) for chunk in states[0].fused.chunks[:10]]
            for _ in range(2):
                started = time.perf_counter()
                model.score(states[0].query.text, passages)
                middle = time.perf_counter()
                rerank.pipeline.stages[place][1](states, rerank.index)
                bare.append(middle - started)
                ours.append(time.perf_counter() - middle)

    model.score("warm", ["up"])
    benchmark.pedantic(measure, rounds=1)
    ratio = float(np.median(np.array(ours) / np.array(bare)))
    print(f"\np6: {1e3 * np.median(ours):.1f} ms for 10 pairs of 128 tokens, {ratio:.3f} times the bare model time")
    benchmark.extra_info["ratio"] = ratio
    assert ratio <= RERANK_FACTOR
