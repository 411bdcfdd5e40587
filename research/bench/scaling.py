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
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from research.bench.scaling_corpus import CHUNKS_PER_DOCUMENT, GeneratedDocuments, SyntheticEncoder, SyntheticModels
from research.bench.scaling_report import report

SIZES = (1_000, 10_000, 100_000, 1_000_000)
REAL_UP_TO = 10_000
PARSED_UP_TO = 100_000
HNSW_UP_TO = 100_000
N_QUERIES, DEPTH, WARM_UP = 200, 100, 20


@dataclass(frozen=True)
class Case:
    """One collection: about `size` chunks below `folder`, with vectors of the model or synthetic ones."""

    size: int
    workers: int
    folder: Path
    real: bool

    @property
    def models(self) -> Any:
        from ragbench.models.access import Models

        return Models() if self.real else SyntheticModels(SyntheticEncoder(max(10, self.size // 30)))

    def index(self, models: Any = None, times: dict[str, float] | None = None) -> Any:
        from ragbench.index.artefacts import ArtefactStore
        from ragbench.index.dense import DenseSpec
        from ragbench.index.index import Index
        from ragbench.index.spec import IndexSpec

        documents = GeneratedDocuments(round(self.size / CHUNKS_PER_DOCUMENT), self.size <= PARSED_UP_TO)

        def note(task: str, done: int, total: int) -> None:
            if times is not None:
                times[task] = time.perf_counter()

        store = ArtefactStore(self.folder)
        spec = IndexSpec(dense=DenseSpec(kind="auto"))
        return Index(spec, f"generated {self.size}", lambda: documents, store, models or self.models)


def build(case: Case) -> dict[str, Any]:
    """Seconds and bytes of the chunk table, the words and the vectors; the peak memory of the whole build."""
    ticks: dict[str, float] = {}
    index = case.index(times=ticks)
    seconds, started = {}, time.perf_counter()
    for part in ("chunks", "lexical", "dense"):
        if part == "dense":
            index.encoder.encode_queries(["load the model"])
            started = time.perf_counter()
            if not case.real:  # worker processes would load the real model
                index = Case(case.size, 1, case.folder, False).index(times=ticks)
                index.artefact("lexical")
        index.artefact(part)
        seconds[part] = time.perf_counter() - started
        if part == "dense":
            seconds["embedding"] = ticks["embedding"] - started
        started = time.perf_counter()
    artefacts = {artefact.kind: artefact for artefact in index.artefacts()}
    vectors = artefacts["dense"].manifest["files"]["vectors.npy"]["bytes"]
    return {
        "chunks": len(index.chunks),
        "documents": index.chunks.n_documents,
        "kind": index.spec.dense.with_kind_for(len(index.chunks)).kind,
        "seconds": seconds,
        "bytes": {
            "chunks": artefacts["chunks"].size_bytes,
            "lexical": artefacts["lexical"].size_bytes,
            "vectors": vectors,
            "structure": artefacts["dense"].size_bytes - vectors,
        },
        **_peaks(),
    }


def ask(case: Case) -> dict[str, Any]:
    """Milliseconds of every channel, of the default pipeline beside the model, and of the model."""
    from ragbench.base.types import Query
    from ragbench.config import composition
    from ragbench.models.access import Models

    index = case.index()
    chance = np.random.default_rng(7)
    texts = []
    for chunk in chance.integers(0, index.chunks.n_retrievable, size=N_QUERIES):
        words = [word for word in index.chunks.text(int(chunk)).split() if word.isalpha()] or ["empty"]
        texts.append(" ".join(chance.choice(words, size=chance.integers(3, 9)).tolist()))
    model = Models().encoder(index.spec.encoder)
    model_ms = _times(lambda text: model.encode_queries([text]), texts[:60])
    known = dict(zip(texts, _query_vectors(index, case, model, texts), strict=True))
    index = case.index(SimpleNamespace(encoder=lambda spec: _Known(case.models.encoder(spec), known)))
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
        **_peaks(),
    }


def neighbours(case: Case, kind: str) -> dict[str, Any]:
    """Build time, bytes, milliseconds and recall@10 of one structure over the vectors of a finished index."""
    from ragbench.index.dense import VECTORS, DenseIndex, DenseSpec, build_neighbours

    index = case.index()
    with tempfile.TemporaryDirectory(dir=case.folder) as name:
        place = Path(name)
        os.link(index.artefact("dense").folder / VECTORS, place / VECTORS)
        started = time.perf_counter()
        build_neighbours(place, DenseSpec(kind=kind))  # type: ignore[arg-type]
        seconds = time.perf_counter() - started
        queries = _query_vectors(index, case, None, [""] * N_QUERIES)
        dense = DenseIndex(place, DenseSpec(kind=kind))  # type: ignore[arg-type]
        return {
            "seconds": seconds,
            "bytes": sum(path.stat().st_size for path in place.iterdir() if path.name != VECTORS),
            "ms": _times(lambda row: dense.search(queries[row][None], DEPTH), range(N_QUERIES)),
            "recall": _recall(dense, queries),
            **_peaks(),
        }


class _Known:
    """An encoder whose answers for the queries are known: what is left is the time beside the model."""

    def __init__(self, encoder: Any, vectors: dict[str, Any]) -> None:
        self._encoder, self._vectors = encoder, vectors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode_queries(self, texts: Any) -> Any:
        return np.stack([self._vectors[text] for text in texts])


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


def _peaks() -> dict[str, float]:
    """Resident megabytes at the peak, mapped pages of files included: of this process and of its largest worker."""
    own, workers = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {"peak_mb": own / 1024, "worker_peak_mb": workers / 1024}


def _measured(case: Case, what: str) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--measure", what, "--sizes", str(case.size), "--folder", str(case.folder)]
    command += ["--workers", str(case.workers), *(["--synthetic"] if not case.real else [])]
    started = time.time()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print(f"{case.size} chunks, {case.workers} workers, {what}: {time.time() - started:.0f} s", flush=True)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def measure_all(sizes: list[int], real_up_to: int, place: Path, fresh: bool) -> dict[str, Any]:
    """Every row that `place` (JSON) does not hold yet; it is written after each."""
    rows: dict[str, Any] = {} if fresh or not place.exists() else json.loads(place.read_text())
    with tempfile.TemporaryDirectory(prefix="scaling-", dir=place.parent) as scratch:
        for size in sizes:
            case = Case(size, 1, Path(scratch) / str(size), size <= real_up_to)
            wanted = [("build 2", "build", 2), ("build 1", "build", 1), ("ask", "ask", 1)]
            kinds = ["flat", "ivf_sq8", *(["hnsw"] if size <= HNSW_UP_TO else [])]
            wanted += [(kind, kind, 1) for kind in kinds]
            if all(f"{size} {name}" in rows for name, _, _ in wanted):
                continue
            for name, what, workers in wanted:
                if what == "build":
                    shutil.rmtree(case.folder, ignore_errors=True)
                row = _measured(Case(size, workers, case.folder, case.real), what)
                rows[f"{size} {name}"] = {**row, "real": case.real}
            place.write_text(json.dumps(rows, indent=1))
            shutil.rmtree(case.folder)
    return rows


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
    parser.add_argument("--workers", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--synthetic", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    if given.measure:
        case = Case(sizes[0], given.workers, Path(given.folder), not given.synthetic)
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
