"""A collection built in shards answers as one built in one piece, whatever the number of workers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.config.execution_backends import sharding_of
from ragbench.corpus.chunking import HeaderChunker, ParentChildChunker
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index
from ragbench.index.lexical import LexicalIndex, LexicalSpec, build_lexical, merge_lexical
from ragbench.index.shards import Sharding
from ragbench.index.spec import IndexSpec
from ragbench.index.texts import PassageTemplate
from ragbench.models.access import Models

SPEC = IndexSpec(
    chunker=ParentChildChunker(),
    passage=PassageTemplate(title=True, path=True, headings=True),
    sources=(("documents", LexicalSpec(unit="document")),),
)
QUESTIONS = ("how do lamps know when the sun sets", "LNT-301", "wrong passwords", "certificates for controllers")


@pytest.fixture(scope="module")
def build(benchmark_small: Benchmark, models: Models, tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("sharded")

    def make(name: str, sharding: Sharding, spec: IndexSpec = SPEC) -> Index:
        documents = benchmark_small.documents
        store = ArtefactStore(root / name)
        index = Index(spec, benchmark_small.collection, lambda: documents, store, models, sharding=sharding)
        index.prepare({"chunks", "lexical", "dense", "code", "graph"})
        return index

    return make


@pytest.fixture(scope="module")
def whole(build) -> Index:
    return build("whole", Sharding())


@pytest.fixture(scope="module")
def one(build) -> Index:
    return build("one", Sharding(2))


@pytest.fixture(
    scope="module",
    params=[
        "one worker",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("two workers", "execution=joblib")),
    ],
)
def index(request: pytest.FixtureRequest, build, one: Index) -> Index:
    if request.param == "one worker":
        return one
    if request.param == "two workers":
        return build(request.param, Sharding(2, 2))
    words = [request.param, "execution.workers=2", "index.build.shard_documents=2"]
    return build(request.param, sharding_of(composition.compose(words)))


@pytest.mark.slow
def test_every_byte_is_that_of_one_worker(index: Index, one: Index) -> None:
    for part in ("chunks", "dense", "graph"):  # Lucene gives its segments random ids
        assert index.artefact(part).manifest["files"] == one.artefact(part).manifest["files"], part


def test_the_tables_are_the_same(index: Index, whole: Index) -> None:
    for name in ("_chunks", "_documents", "_blocks"):
        assert getattr(index.chunks, name).equals(getattr(whole.chunks, name)), name
    assert index.chunks.chunk_ids == whole.chunks.chunk_ids
    assert index.chunks.parent.max() > index.chunks.n_retrievable - 1


def test_every_channel_answers_the_same(index: Index, whole: Index) -> None:
    assert np.array_equal(index.dense.vectors, whole.dense.vectors)
    vectors = whole.encoder.encode_queries(list(QUESTIONS))
    assert index.dense.search(vectors, 20) == whole.dense.search(vectors, 20)
    for question in QUESTIONS:
        assert index.lexical.search(question, 20) == whole.lexical.search(question, 20)
    mask = np.arange(len(whole.lexical)) % 3 == 0
    assert index.lexical.search(QUESTIONS[0], 20, mask) == whole.lexical.search(QUESTIONS[0], 20, mask)
    index.lexical.check()


def test_fingerprints_do_not_know_how_it_was_built(index: Index, whole: Index) -> None:
    needs = {"chunks", "lexical", "dense"}
    assert index.fingerprints(needs) == whole.fingerprints(needs)
    assert not list((index.store.root / "shards").iterdir())


def test_a_part_of_a_table_counts_from_nought(whole: Index) -> None:
    table = whole.chunks
    part = table.part(2, 5)
    start, stop = table.chunks_of(2)[0], table.chunks_of(4)[1]
    assert part.docnos == table.docnos[2:5]
    assert part.texts() == table.texts(start, stop)
    assert part.document.tolist() == (table.document[start:stop] - 2).tolist()
    assert part.n_retrievable == len(part) == stop - start
    assert part.part(1, 2).docnos == table.docnos[3:4]


def test_documents_without_text_between_others(build, benchmark_small: Benchmark) -> None:
    class NoneOfTheFirst(HeaderChunker):
        def chunk(self, document):
            return [] if document.docno < benchmark_small.documents[3].docno else super().chunk(document)

    spec = IndexSpec(chunker=NoneOfTheFirst())
    sharded = build("empty shards", Sharding(2), spec)
    assert sharded.chunks._chunks.equals(build("empty whole", Sharding(), spec).chunks._chunks)
    assert len(sharded.dense) == len(sharded.lexical) == len(sharded.chunks)


def test_merged_segments_keep_their_order(tmp_path: Path) -> None:
    spec = LexicalSpec(("content",))
    rows = [{"content": f"lamp number{n} {'mast ' * (n % 4)}"} for n in range(30)]
    build_lexical(tmp_path / "whole", spec, rows)
    for start in (0, 10, 20):
        build_lexical(tmp_path / f"{start}", spec, rows[start : start + 10], number=start)
    merge_lexical(tmp_path / "merged", spec, [tmp_path / f"{start}" for start in (0, 10, 20)])
    indexes = [LexicalIndex(tmp_path / name, spec) for name in ("whole", "merged")]
    for text in ("lamp", "mast", "number17 mast"):
        found = [index.search(text, 30) for index in indexes]
        assert found[0] == found[1]
        assert len(found[0])
