"""The parts of an index: how each is made, what it depends on, how it is opened. A part imports its module when named.

`PARTS` exist once in an index; one of `SOURCES` is also made for a further source: `lexical:documents`. An extra holds
its own in `extras/NAME/parts`, one module each with `PART`; the module of a stage calls `register`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ragbench.base import progress
from ragbench.base.errors import IndexError_
from ragbench.index.index import Index, Part, StoredPart

_Sized = TypeVar("_Sized", bound=Sized)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragbench.index.background import BackgroundSimilarity
    from ragbench.index.chunks import ChunkTable
    from ragbench.index.code import CodeIndex
    from ragbench.index.dense import Centroids, DenseIndex
    from ragbench.index.filters import Facets
    from ragbench.index.graph import GraphIndex
    from ragbench.index.lexical import LexicalIndex
    from ragbench.index.shards import Building
    from ragbench.index.synonyms import Synonyms
    from ragbench.index.terms import TermIndex
    from ragbench.index.trigrams import TrigramIndex
    from ragbench.index.vocabulary import Vocabulary
    from ragbench.models import Encoder


def _with_rows(opened: _Sized, rows: int, path: Path) -> _Sized:
    """Raise IndexError_ for a part of more or fewer rows than the table of chunks."""
    if len(opened) != rows:
        raise IndexError_(
            f"{path} has {len(opened)} rows instead of {rows}: export the bundle again, or delete the index"
        )
    return opened


def _chunks() -> StoredPart[ChunkTable]:
    """The chunk table."""
    from ragbench.index import sharded
    from ragbench.index.chunks import VERSION, ChunkTable, build_chunks

    def build(building: Building, index: Index) -> None:
        documents, chunker = index.documents, index.spec.chunker
        if building.in_shards(len(documents)):
            tick = progress.task_ticks("chunking", len(documents))
            sharded.build_chunks(building.folder, documents, chunker, building.shards, tick)
        else:
            chunked = (chunker.chunk(document) for document in documents)
            build_chunks(building.folder, documents, progress.counted("chunking", chunked, len(documents)))

    return StoredPart(
        "chunks",
        inputs=lambda index: [index.collection, VERSION, index.spec.chunker.version, index.spec.chunker],
        build=build,
        open=lambda folder, index: ChunkTable(folder),
    )


def _code() -> StoredPart[CodeIndex]:
    """Code blocks, by identifiers and their parts."""
    from ragbench.index.code import VERSION, CodeIndex, build_code

    def build(building: Building, index: Index) -> None:
        blocks = index.chunks.blocks.select(["code", "language"]).to_pylist()
        build_code(building.folder, ((number, block["code"], block["language"]) for number, block in enumerate(blocks)))

    return StoredPart(
        "code",
        inputs=lambda index: [index.fingerprint("chunks"), VERSION],
        build=build,
        open=lambda folder, index: CodeIndex(folder, index.memory),
    )


def _facets() -> Part[Facets]:
    """The properties that documents can be filtered by."""
    from ragbench.index.filters import Facets

    return Part(
        "facets",
        fingerprint=lambda index: index.collection,
        open=lambda index: Facets(index.chunks, index.modified, getattr(index.spec.chunker, "method", "")),
    )


def _graph() -> StoredPart[GraphIndex]:
    """Links between documents and their communities."""
    from ragbench.index.graph import VERSION, GraphIndex, build_graph

    return StoredPart(
        "graph",
        inputs=lambda index: [index.fingerprint("chunks"), VERSION],
        build=lambda building, index: build_graph(building.folder, index.chunks),
        open=lambda folder, index: GraphIndex(folder, index.chunks),
    )


def _modified() -> Part[NDArray[np.float64]]:
    """When each document was modified, in seconds since the epoch, shape (n_documents,)."""

    def times(index: Index) -> NDArray[np.float64]:
        times = index.times()
        return np.array([times[docno] for docno in index.chunks.docnos], dtype=np.float64)

    return Part("modified", fingerprint=lambda index: index.collection, open=times)


def _synonyms() -> StoredPart[Synonyms]:
    """WordNet's synonyms, the same for every collection."""
    from ragbench.index.synonyms import VERSION, Synonyms, build_synonyms, source_version

    return StoredPart(
        "synonyms",
        inputs=lambda index: [VERSION, source_version()],
        build=lambda building, index: build_synonyms(building.folder),
        open=lambda folder, index: Synonyms(folder),
    )


def _terms() -> StoredPart[TermIndex]:
    """Terms of documents and chunks, for a trained ranker."""
    from ragbench.index.terms import VERSION, TermIndex, build_terms

    return StoredPart(
        "terms",
        inputs=lambda index: [index.fingerprint("chunks"), index.spec.lexical.analyzer, VERSION],
        build=lambda building, index: build_terms(building.folder, index.chunks, index.spec.lexical.analyzer),
        open=lambda folder, index: TermIndex(folder, index.chunks, index.spec.lexical.analyzer),
    )


def _trigrams() -> StoredPart[TrigramIndex]:
    """The overlap of chunks."""
    from ragbench.index.trigrams import VERSION, TrigramIndex, build_trigrams

    return StoredPart(
        "trigrams",
        inputs=lambda index: [index.fingerprint("chunks"), VERSION],
        build=lambda building, index: build_trigrams(building.folder, index.chunks),
        open=lambda folder, index: TrigramIndex(folder),
    )


def _vocabulary() -> StoredPart[Vocabulary]:
    """The collection's words and their vectors."""
    from ragbench.index.vocabulary import VERSION, Vocabulary, build_vocabulary, frequent_terms

    def build(building: Building, index: Index) -> None:
        texts = index.chunks.texts(0, index.chunks.n_retrievable)
        build_vocabulary(building.folder, frequent_terms(texts, index.spec.vocabulary), index.encoder)

    return StoredPart(
        "vocabulary",
        inputs=lambda index: [
            *(index.fingerprint("chunks"), VERSION, index.spec.vocabulary, index.encoder.passage_digest)
        ],
        build=build,
        open=lambda folder, index: Vocabulary(folder),
    )


def _centroids(suffix: str) -> StoredPart[Centroids]:
    """The mean vectors of documents."""
    from ragbench.index.dense import CENTROIDS_VERSION, Centroids, build_centroids

    return StoredPart(
        f"centroids{suffix}",
        inputs=lambda index: [index.fingerprint(f"dense{suffix}"), CENTROIDS_VERSION],
        build=lambda building, index: build_centroids(
            building.folder, index.chunks, index.part(f"dense{suffix}").vectors
        ),
        open=lambda folder, index: Centroids(folder, index.chunks, index.part(f"dense{suffix}")),
    )


def _dense(suffix: str) -> StoredPart[DenseIndex]:
    """Unit vectors of the chunks, searched by inner product."""
    from ragbench.index import sharded
    from ragbench.index.dense import VECTORS, VERSION, DenseIndex, build_dense

    source = suffix.removeprefix(":")

    def inputs(index: Index) -> list[Any]:
        spec, encoder = index.spec.vectors(source), index.part(f"encoder{suffix}")
        kind = spec.dense.with_kind_for(index.chunks.n_retrievable)
        return [index.fingerprint("chunks"), VERSION, kind, encoder.passage_digest, spec.passage]

    def build(building: Building, index: Index) -> dict[str, Any]:
        table, spec = index.chunks, index.spec.vectors(source)
        tick = progress.task_ticks("embedding", table.n_retrievable)
        if building.in_shards(table.n_documents):
            folder, models = index.artefact("chunks").folder, index.models
            sharded.build_dense(building.folder, spec, folder, models, building.shards, tick)
            return {}
        encoder = index.part(f"encoder{suffix}")
        origins_before = Counter(getattr(encoder, "origins", ()))
        build_dense(building.folder, spec.dense, encoder.encode_passages(spec.passage.passages(table), tick))
        numerics = {"here": getattr(encoder, "numerics", "")}
        if (counts := Counter(getattr(encoder, "origins", ())) - origins_before)["shipped"]:
            numerics["shipped"] = encoder.shipped.numerics
        return {"vectors": dict(counts), "numerics": numerics}

    return StoredPart(
        f"dense{suffix}",
        inputs=inputs,
        build=build,
        open=lambda folder, index: _with_rows(
            DenseIndex(folder, index.spec.vectors(source).dense), index.chunks.n_retrievable, folder / VECTORS
        ),
    )


def _encoder(suffix: str) -> Part[Encoder]:
    """The model that embeds queries and passages."""
    return Part(
        f"encoder{suffix}",
        fingerprint=lambda index: index.part(f"encoder{suffix}").digest,
        open=lambda index: index.models.encoder(index.spec.vectors(suffix.removeprefix(":")).encoder),
    )


def _lexical(suffix: str) -> StoredPart[LexicalIndex]:
    """Words, scored by BM25F."""
    from ragbench.index import sharded
    from ragbench.index.lexical import VERSION, LexicalIndex, build_lexical
    from ragbench.index.texts import lexical_rows

    source = suffix.removeprefix(":")

    def rows_of(index: Index) -> int:
        return index.chunks.n_retrievable if index.spec.words(source).unit == "chunk" else index.chunks.n_documents

    def build(building: Building, index: Index) -> None:
        table, spec, total = index.chunks, index.spec.words(source), rows_of(index)
        if building.in_shards(table.n_documents):
            tick = progress.task_ticks("indexing terms", total)
            sharded.build_lexical(building.folder, spec, index.artefact("chunks").folder, building.shards, tick)
        else:
            rows = lexical_rows(table, spec.fields, spec.unit)
            build_lexical(building.folder, spec, progress.counted("indexing terms", rows, total))

    return StoredPart(
        f"lexical{suffix}",
        inputs=lambda index: [index.fingerprint("chunks"), VERSION, index.spec.words(source)],
        build=build,
        open=lambda folder, index: _with_rows(
            LexicalIndex(folder, index.spec.words(source), memory=index.memory), rows_of(index), folder
        ),
    )


def _noise(suffix: str) -> StoredPart[BackgroundSimilarity]:
    """The best cosines of queries that have nothing to do with the collection."""
    from ragbench.index.background import VERSION, BackgroundSimilarity, build_noise

    return StoredPart(
        f"noise{suffix}",
        inputs=lambda index: [index.fingerprint(f"dense{suffix}"), index.fingerprint(f"encoder{suffix}"), VERSION],
        build=lambda building, index: build_noise(
            building.folder, index.part(f"dense{suffix}"), index.part(f"encoder{suffix}")
        ),
        open=lambda folder, index: BackgroundSimilarity(folder, index.part(f"dense{suffix}")),
    )


PARTS: Mapping[str, Callable[[], Part[Any] | StoredPart[Any]]] = {
    "chunks": _chunks,
    "code": _code,
    "facets": _facets,
    "graph": _graph,
    "modified": _modified,
    "synonyms": _synonyms,
    "terms": _terms,
    "trigrams": _trigrams,
    "vocabulary": _vocabulary,
}
"""By name, what makes a part."""
SOURCES: Mapping[str, Callable[[str], Part[Any] | StoredPart[Any]]] = {
    "centroids": _centroids,
    "dense": _dense,
    "encoder": _encoder,
    "lexical": _lexical,
    "noise": _noise,
}
"""By kind, what makes the part of a source from its suffix: `""` is the index itself, `:NAME` a further source."""
