"""Measure how indexes grow: python -m research.bench.scaling --write docs/research/scaling.md

Every measurement runs in a process of its own, so that its peak memory is its own. `--sizes 1000,10000` measures fewer
rows; rows that stand in --rows already are kept unless --fresh is given. Up to `--real` chunks are embedded by the
model, above that vectors are synthetic; documents are generated at every size (research/bench/scaling_corpus.py).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from research.bench.scaling_corpus import CHUNKS_PER_DOCUMENT, GeneratedDocuments, SyntheticEncoder, SyntheticModels

SIZES = (1_000, 10_000, 100_000, 1_000_000)
REAL_UP_TO = 10_000
PARSED_UP_TO = 100_000
HNSW_UP_TO = 100_000
N_QUERIES, DEPTH, WARM_UP = 200, 100, 20


@dataclass(frozen=True)
class Case:
    """One collection: about `size` chunks below `folder`, with vectors of the model or synthetic ones."""

    size: int
    folder: Path
    real: bool

    @property
    def models(self) -> Any:
        from ragbench.models.resolve import Models

        return Models() if self.real else SyntheticModels(SyntheticEncoder(max(10, self.size // 30)))

    def index(self, models: Any = None) -> Any:
        """The index of the collection; parts that are not there yet are built when they are asked for."""
        from ragbench.index.artefacts import ArtefactStore
        from ragbench.index.dense import DenseSpec
        from ragbench.index.index import Index, IndexSpec

        documents = GeneratedDocuments(round(self.size / CHUNKS_PER_DOCUMENT), self.size <= PARSED_UP_TO)
        spec = IndexSpec(dense=DenseSpec(kind="auto"))
        name = f"generated {self.size}"
        return Index(spec, name, lambda: documents, ArtefactStore(self.folder), models or self.models)


def build(case: Case) -> dict[str, Any]:
    """Seconds and bytes of the chunk table, the words and the vectors; the peak memory of the whole build."""
    index = case.index()
    seconds = {}
    for part in ("chunks", "lexical", "dense"):
        if part == "dense":
            index.encoder.encode_queries(["load the model"])
        started = time.perf_counter()
        index.artefact(part)
        seconds[part] = time.perf_counter() - started
    return {
        "chunks": len(index.chunks),
        "documents": index.chunks.n_documents,
        "kind": index.spec.dense.with_kind_for(len(index.chunks)).kind,
        "seconds": seconds,
        "bytes": {artefact.kind: artefact.size_bytes for artefact in index.artefacts()},
        "peak_mb": _peak_mb(),
    }


def ask(case: Case) -> dict[str, Any]:
    """Milliseconds of every channel, of the default pipeline beside the model, and of the model."""
    from ragbench.base.types import Query
    from ragbench.config import composition
    from ragbench.models.resolve import Models

    index = case.index()
    chance = np.random.default_rng(7)
    texts = []
    for chunk in chance.integers(0, index.chunks.n_retrievable, size=N_QUERIES):
        words = [word for word in index.chunks.text(int(chunk)).split() if word.isalpha()] or ["empty"]
        texts.append(" ".join(chance.choice(words, size=chance.integers(3, 9)).tolist()))
    model = Models().encoder(index.spec.encoder)
    model_ms = _times(lambda text: model.encode_queries([text]), texts[:60])
    known = dict(zip(texts, _query_vectors(index, case, model, texts), strict=True))
    models = case.models
    known_only = {"encoder": lambda spec: _Known(models.encoder(spec), known), "memory": models.memory}
    index = case.index(SimpleNamespace(**known_only))
    pipeline = composition.compose([]).pipeline
    index.prepare(pipeline.needs)
    (chunks, lexical, dense) = index.chunks, index.lexical, index.dense
    return {
        "lexical": _times(lambda text: lexical.search(text, DEPTH), texts),
        "dense": _times(lambda text: dense.search(known[text][None], DEPTH), texts),
        "hybrid": _times(lambda text: pipeline([Query("q", text)], index), texts),
        "model": model_ms,
        "recall": _recall(dense, np.stack([known[text] for text in texts])),
        "chunks": len(chunks),
        "peak_mb": _peak_mb(),
    }


def neighbours(case: Case, kind: str) -> dict[str, Any]:
    """Build time, bytes, milliseconds and recall@10 of one structure over the vectors of a finished index."""
    from ragbench.index.dense import VECTORS, DenseIndex, DenseSpec, build_neighbours

    index = case.index()
    with tempfile.TemporaryDirectory(dir=case.folder) as name:
        place = Path(name)
        os.link(index.artefact("dense").folder / VECTORS, place / VECTORS)
        started = time.perf_counter()
        build_neighbours(place, DenseSpec(kind=kind))
        seconds = time.perf_counter() - started
        queries = _query_vectors(index, case, None, [""] * N_QUERIES)
        dense = DenseIndex(place, DenseSpec(kind=kind))
        return {
            "seconds": seconds,
            "bytes": sum(path.stat().st_size for path in place.iterdir() if path.name != VECTORS),
            "ms": _times(lambda row: dense.search(queries[row][None], DEPTH), range(N_QUERIES)),
            "recall": _recall(dense, queries),
            "peak_mb": _peak_mb(),
        }


class _Known:
    """An encoder whose answers for the queries are known: what is left is the time beside the model."""

    def __init__(self, encoder: Any, vectors: dict[str, Any]) -> None:
        self._encoder, self._vectors = encoder, vectors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode_queries(self, texts: Any) -> Any:
        return np.stack(
            [self._vectors[t] if t in self._vectors else self._encoder.encode_queries([t])[0] for t in texts]
        )


def _query_vectors(index: Any, case: Case, model: Any, texts: list[str]) -> Any:
    """Of the texts where the model made the vectors; else near chunks drawn with a seed."""
    if case.real and model is not None:
        return model.encode_queries(texts)
    chance = np.random.default_rng(8)
    vectors = np.load(index.artefact("dense").folder / "vectors.npy", mmap_mode="r")
    near = vectors[np.sort(chance.choice(len(vectors), len(texts)))]
    rows = near + 0.4 * chance.standard_normal(near.shape) / np.sqrt(near.shape[1])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _recall(dense: Any, queries: Any) -> float:
    """The share of the ten nearest chunks, by full comparison, that the structure finds."""
    vectors, best = dense.vectors, [np.empty((0, 2))] * len(queries)
    for start in range(0, len(vectors), 50_000):
        scores = np.asarray(vectors[start : start + 50_000]) @ queries.T
        for row in range(len(queries)):
            top = np.argpartition(-scores[:, row], min(10, len(scores) - 1))[:10]
            both = np.concatenate([best[row], np.column_stack([scores[top, row], top + start])])
            best[row] = both[np.argsort(-both[:, 0])][:10]
    found = dense.search(queries, 10 if dense.spec.kind == "flat" else DEPTH)
    hits = [len(set(f.chunks[:10].tolist()) & set(b[:, 1].astype(int))) for f, b in zip(found, best, strict=True)]
    return float(np.mean(hits)) / 10


def _times(work: Any, items: Any) -> dict[str, float]:
    """Milliseconds by the clock, and `cpu95` by the processor: what a busy machine does not change."""
    clock, processor = [], []
    for item in [*list(items)[:WARM_UP], *items]:
        started = time.perf_counter(), time.thread_time()
        work(item)
        clock.append((time.perf_counter() - started[0]) * 1000)
        processor.append((time.thread_time() - started[1]) * 1000)
    p50, p95 = np.percentile(clock[WARM_UP:], [50, 95])
    return {"p50": float(p50), "p95": float(p95), "cpu95": float(np.percentile(processor[WARM_UP:], 95))}


def _peak_mb() -> float:
    """Resident megabytes of this process at the peak, mapped pages of files included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _measured(case: Case, what: str) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "research.bench.scaling",
        "--measure",
        what,
        "--sizes",
        str(case.size),
        "--folder",
        str(case.folder),
    ]
    command += ["--synthetic"] if not case.real else []
    started = time.time()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print(f"{case.size} chunks, {what}: {time.time() - started:.0f} s", flush=True)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def measure_all(sizes: list[int], real_up_to: int, place: Path, fresh: bool) -> dict[str, Any]:
    """Every row that `place` (JSON) does not hold yet; it is written after each."""
    rows: dict[str, Any] = {} if fresh or not place.exists() else json.loads(place.read_text())
    with tempfile.TemporaryDirectory(prefix="scaling-", dir=place.parent) as scratch:
        for size in sizes:
            case = Case(size, Path(scratch) / str(size), size <= real_up_to)
            kinds = ["build", "ask", "flat", "ivf_sq8", *(["hnsw"] if size <= HNSW_UP_TO else [])]
            if all(f"{size} {kind}" in rows for kind in kinds):
                continue
            for kind in kinds:
                rows[f"{size} {kind}"] = {**_measured(case, kind), "real": case.real}
            place.write_text(json.dumps(rows, indent=1))
            shutil.rmtree(case.folder)
    return rows


def report(rows: dict[str, Any], note: str) -> str:
    """The tables of the page: building, latency by size, and structures over the same vectors."""
    sizes = sorted({int(key.split()[0]) for key in rows})
    builds = [rows[f"{size} build"] for size in sizes]
    parts = [note, "### Building"]
    head = ("chunks", "documents", "parse, chunk s", "words s", "vectors s", "peak MB")
    head += ("tables MB", "words MB", "vectors MB")
    body = [
        (
            f"{row['chunks']:,}",
            f"{row['documents']:,}",
            *(f"{row['seconds'][part]:.1f}" for part in ("chunks", "lexical", "dense")),
            f"{row['peak_mb']:.0f}",
            *(f"{row['bytes'][part] / 1e6:.1f}" for part in ("chunks", "lexical", "dense")),
        )
        for row in builds
    ]
    parts += [_table(head, body), "### Query latency"]
    head = ("chunks", "words ms", "dense ms", "hybrid ms", "model ms", "R@10", "MB")
    body = []
    for size, build in zip(sizes, builds, strict=True):
        row = rows[f"{size} ask"]
        times = (_times_text(row[name]) for name in ("lexical", "dense", "hybrid", "model"))
        first = f"{build['chunks']:,} ({build['kind']})"
        body.append((first, *times, f"{row['recall']:.3f}", f"{row['peak_mb']:.0f}"))
    parts += [_table(head, body), "### ANN indexes over the same vectors"]
    head = ("chunks", "structure", "build s", "MB", "ms", "R@10")
    body = []
    for size, build in zip(sizes, builds, strict=True):
        for kind in ("flat", "hnsw", "ivf_sq8"):
            if (row := rows.get(f"{size} {kind}")) is not None:
                cells = (f"{row['seconds']:.1f}", f"{row['bytes'] / 1e6:.1f}", _times_text(row["ms"]))
                body.append((f"{build['chunks']:,}", kind, *cells, f"{row['recall']:.3f}"))
    return "\n\n".join(part for part in (*parts, _table(head, body)) if part)


def _times_text(times: Mapping[str, float]) -> str:
    return f"{times['p50']:.2f} / {times['p95']:.2f} ({times['cpu95']:.2f})"


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--real", type=int, default=REAL_UP_TO, help="embed up to so many chunks with the model")
    parser.add_argument("--rows", type=Path, default=Path("results/scaling.json"))
    parser.add_argument("--write", type=Path, help="the document whose measured part is replaced")
    parser.add_argument("--note", default="", help="a sentence about the machine")
    parser.add_argument("--fresh", action="store_true")
    for hidden in ("--measure", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--synthetic", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    if given.measure:
        case = Case(sizes[0], Path(given.folder), not given.synthetic)
        case.folder.mkdir(parents=True, exist_ok=True)
        what = given.measure
        row = build(case) if what == "build" else ask(case) if what == "ask" else neighbours(case, what)
        print(json.dumps(row))
        return
    given.rows.parent.mkdir(parents=True, exist_ok=True)
    text = report(measure_all(sizes, given.real, given.rows, given.fresh), given.note)
    if given.write is None:
        print(text)
        return
    before, _, rest = given.write.read_text(encoding="utf-8").partition("<!-- measured -->")
    after = rest.partition("<!-- /measured -->")[2]
    given.write.write_text(f"{before}<!-- measured -->\n{text}\n<!-- /measured -->{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
