"""Figures that research/conformance.yaml gives as reasons, counted again on the built-in benchmark and the models."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ragbench import load_benchmark
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.corpus.links import collection_digest
from ragbench.extras.systems.librarian_chunking import LibrarianSemanticChunker
from ragbench.extras.systems.stages.guarantee import GuaranteeNotes
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.chunking import HeaderChunker, ParentChildChunker
from ragbench.index.index import Index
from ragbench.models import bundled
from ragbench.models.resolve import Models
from research.conformance import ROOT, figures, read

ROWS = {row.id: row for row in read()}


@pytest.fixture(scope="module")
def builtin() -> Benchmark:
    return load_benchmark()


@cache
def _given(row: str) -> set[float]:
    return {float(figure) for figure in figures(ROWS[row].differs)}


def _gives(row: str, *numbers: float) -> bool:
    return _given(row) >= set(numbers)


def test_figures_of_headings_and_documents(builtin: Benchmark) -> None:
    levels = [section.level for document in builtin.documents for section in document.sections if section.level]
    assert (len(levels), sum(level > 3 for level in levels)) == (2_613, 28)
    assert _gives("p4-heading-levels", 2_613, 28)
    assert sum(document.path.endswith(".md") for document in builtin.documents) == len(builtin.documents) == 521
    assert _gives("lib-docx", 521)


def test_figures_of_chunks(builtin: Benchmark) -> None:
    chunks = [HeaderChunker().chunk(document) for document in builtin.documents]
    short = [len(of_one) == 1 for of_one in chunks for chunk in of_one if len(chunk.text) < 200]
    assert (sum(map(len, chunks)), len(short), sum(short)) == (2_162, 116, 108)
    assert max(len(chunk.text) for of_one in chunks for chunk in of_one) <= 1500
    assert _gives("sys-chunk-sizes", 2_162, 116, 108)
    assert sum(len(LibrarianSemanticChunker().chunk(document)) for document in builtin.documents) == 2_685
    assert _gives("lib-neighbours", 2_685)


def test_figures_of_children_and_parents(builtin: Benchmark) -> None:
    chunks = [ParentChildChunker().chunk(document) for document in builtin.documents]
    children = [len(chunk.text) for of_one in chunks for chunk in of_one if not chunk.is_parent]
    sizes = [[len(chunk.text) for chunk in of_one if chunk.is_parent] for of_one in chunks]
    parents = [size for of_one in sizes for size in of_one]
    short, long = sum(size < 400 for size in children), sum(size > 600 for size in children)
    assert (len(children), round(100 * short / len(children)), long, max(children)) == (2_834, 38, 20, 994)
    assert _gives("p13-child-size", 2_834, 38, 20, 994)
    short, whole = sum(size < 1500 for size in parents), sum(of_one[0] < 1500 and len(of_one) == 1 for of_one in sizes)
    assert (len(parents), max(parents) <= 2000, short, whole) == (984, True, 595, 359)
    assert round(100 * short / len(parents)) == 60
    assert _gives("p13-parent-size", 984, 60, 595, 359)


def test_figures_of_ids_with_and_without_parents(builtin: Benchmark) -> None:
    plain = {c.chunk_id: (c.start, c.end) for d in builtin.documents for c in HeaderChunker().chunk(d)}
    children = {c.chunk_id: (c.start, c.end) for d in builtin.documents for c in ParentChildChunker().chunk(d)}
    shared = plain.keys() & children.keys()
    other = sum(plain[name] != children[name] for name in shared)
    assert (len(shared), other) == (2_038, 1_633)
    assert _gives("p13-ids", len(shared), other)


def test_figures_of_cosines(builtin: Benchmark, tmp_path: Path) -> None:
    models = Models(cache=tmp_path / "cache", shipped=True)
    spec, collection = composition.compose(["exp=baseline"]).index, collection_digest(builtin.documents)
    vectors = Index(
        spec, collection, lambda: builtin.documents, ArtefactStore(tmp_path / "index"), models
    ).dense.vectors
    least = min(float((part @ vectors.T).min()) for part in np.array_split(vectors, 5))
    assert (len(vectors), round(least, 2)) == (2_162, 0.26)
    assert _gives("p11-negative", 2_162, 0.26)


def test_figures_of_vectors_and_names() -> None:
    vector = np.random.default_rng(0).standard_normal(384).astype(np.float32)
    vector /= np.linalg.norm(vector)
    assert vector.nbytes == 1_536
    shortest = json.dumps([float(str(number)) for number in vector])
    assert (len(shortest), len(json.dumps(vector.tolist()))) == (5_073, 8_416)
    assert _gives("p1-kept", 1_536, 384, 5_073, 8_416)
    names = 50  # Lucene's inverse document frequency of a term that all of them have
    assert round(math.log(1 + 0.5 / (names + 0.5)), 2) == 0.01
    assert _gives("p7-namespace", 50, 0.01)


def test_figures_of_models() -> None:
    folders = {model.kind: model.locate() for model in bundled.BUNDLED if model.backend == "onnx"}
    encoder, cross_encoder = (folders[kind].root / "model.onnx" for kind in ("encoder", "cross-encoder"))
    assert round(encoder.stat().st_size / 1e6) == 34
    assert _gives("sys-encoder-int8", 34) and _gives("sentence-transformers", 34)
    layers = {int(number) for number in re.findall(rb"layer[._](\d+)", cross_encoder.read_bytes())}
    assert len(layers) == 12 and _gives("p6-model", 12)


def test_figures_of_guaranteed_notes() -> None:
    assert GuaranteeNotes().limit == 100
    assert 130 - 100 == 30 and _gives("v3-never-lost", 100, 130, 30)


def test_figures_of_the_best_precision(builtin: Benchmark) -> None:
    test = {topic.qid for topic in builtin.topics if topic.split == "test"}
    judged = [grades.values() for qid, grades in builtin.document_qrels.items() if qid in test]
    relevant = [sum(grade > 0 for grade in grades) for grades in judged]
    assert round(float(np.mean([min(count, 5) / 5 for count in relevant if count])), 3) == 0.616
    assert _gives("lib-quality", 0.616)


def test_figures_of_packages_of_commands() -> None:
    lock = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
    packages = re.findall(r"^([\w.-]+)==", lock, flags=re.MULTILINE)
    assert len(packages) == 138 and not [name for name in packages if "jupyter" in name]
    assert _gives("jupyterlab", 138)
