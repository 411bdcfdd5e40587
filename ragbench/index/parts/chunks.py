"""The chunk table."""

from __future__ import annotations

from ragbench.index import sharded
from ragbench.index.chunks import VERSION, ChunkTable, build_chunks
from ragbench.index.index import Index, StoredPart
from ragbench.index.shards import Building


def _build(building: Building, index: Index) -> None:
    documents, chunker = index.documents, index.spec.chunker
    if building.in_shards(len(documents)):
        tick = building.ticks("chunking", len(documents))
        sharded.build_chunks(building.folder, documents, chunker, building.shards, tick)
    else:
        chunked = (chunker.chunk(document) for document in documents)
        build_chunks(building.folder, documents, building.with_progress("chunking", chunked, len(documents)))


PART = StoredPart(
    "chunks",
    inputs=lambda index: [index.collection, VERSION, index.spec.chunker.version, index.spec.chunker],
    build=_build,
    open=lambda folder, index: ChunkTable(folder),
)
