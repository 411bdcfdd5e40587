"""Artefacts of large collections, built in shards and merged: chunk table, Lucene index and vectors.

Memory holds a few shards, never the whole collection. Searches give the same results as with an index built at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragbench.index import chunks, dense, lexical
from ragbench.index.chunks import ChunkTable
from ragbench.index.texts import lexical_rows
from ragbench.models.access import Models
from ragbench.models.parallel import threads_for

if TYPE_CHECKING:
    from ragbench.base.types import Document
    from ragbench.corpus.chunking import Chunker
    from ragbench.index.lexical import LexicalSpec
    from ragbench.index.shards import Shards, Task, Tick
    from ragbench.index.spec import VectorsSpec
    from ragbench.index.texts import PassageTemplate
    from ragbench.models import Encoder
    from ragbench.models.resolve import EncoderSpec

_VECTORS = "part.npy"


def build_chunks(folder: Path, documents: Sequence[Document], chunker: Chunker, shards: Shards, tick: Tick) -> None:
    """The chunk table: a small table for every shard, then all copied one after the other."""

    def tasks() -> Iterator[tuple[int, Task]]:
        for start in shards.sharding.starts(len(documents)):
            part = documents[start : start + shards.sharding.shard_documents]
            yield len(part), partial(_chunk_documents, part, chunker)

    chunks.merge_chunks(folder, shards.run(tasks(), tick))


def build_lexical(folder: Path, spec: LexicalSpec, source: Path, shards: Shards, tick: Tick) -> None:
    """The Lucene index of the chunk table in `source`: a segment for each shard, then merged into one."""
    ranges = _ranges(source, shards)
    if spec.unit == "document":
        ranges = ((first, last, first, last) for first, last, _, _ in ranges)
    tasks = [
        (stop - start, partial(_index_documents, source, spec, first, last, start))
        for first, last, start, stop in ranges
    ]
    lexical.merge_lexical(folder, spec, shards.run(tasks, tick))


def build_dense(folder: Path, spec: VectorsSpec, source: Path, models: Models, shards: Shards, tick: Tick) -> None:
    """The vectors of the chunk table in `source`, written shard by shard, and the search structure over them.

    Each worker process loads the model; the workers share the CPUs.
    """
    encoder_spec = spec.encoder
    apart, workers = shards.sharding.out_of_process, shards.sharding.workers
    threads = max(1, threads_for(models.threads) // workers)
    ranges = list(_ranges(source, shards))
    tasks: list[tuple[int, Task]] = []
    for first, last, start, stop in ranges:
        embed = partial(_embed, source, spec.passage, first, last)
        if apart:
            tasks.append((stop - start, partial(_embed_in_worker, embed, models.cache, threads, encoder_spec)))
        else:
            tasks.append((stop - start, partial(embed, models.encoder(encoder_spec))))
    parts = shards.run(tasks, tick)
    shape = (ranges[-1][3] if ranges else 0, models.encoder(encoder_spec).dim)
    vectors = np.lib.format.open_memmap(folder / dense.VECTORS, mode="w+", dtype=np.float32, shape=shape)
    for part, (_, _, start, stop) in zip(parts, ranges, strict=True):
        vectors[start:stop] = np.load(part / _VECTORS, mmap_mode="r", allow_pickle=False)
    vectors.flush()
    del vectors
    dense.build_neighbours(folder, spec.dense)


def _ranges(source: Path, shards: Shards) -> Iterator[tuple[int, int, int, int]]:
    """First document, the one after the last, first chunk and the one after the last of every shard."""
    table = ChunkTable(source)
    for first in shards.sharding.starts(table.n_documents):
        last = min(first + shards.sharding.shard_documents, table.n_documents)
        yield first, last, table.chunks_of(first)[0], table.chunks_of(last - 1)[1]


def _chunk_documents(documents: Sequence[Document], chunker: Chunker, folder: Path) -> None:
    documents = tuple(documents)  # a lazy sequence makes its documents once, here in the worker
    chunks.build_chunks(folder, documents, (chunker.chunk(document) for document in documents))


def _index_documents(source: Path, spec: LexicalSpec, first: int, last: int, number: int, folder: Path) -> None:
    rows = lexical_rows(ChunkTable(source).part(first, last), spec.fields, spec.unit)
    lexical.build_lexical(folder, spec, rows, number=number)


def _embed(source: Path, passage: PassageTemplate, first: int, last: int, encoder: Encoder, folder: Path) -> None:
    passages = passage.passages(ChunkTable(source).part(first, last))
    np.save(folder / _VECTORS, encoder.encode_passages(passages), allow_pickle=False)


def _embed_in_worker(
    embed: partial[None], cached: Path | None, threads: int | None, spec: EncoderSpec, folder: Path
) -> None:
    embed(_encoder(cached, threads, spec), folder)


@cache
def _encoder(cached: Path | None, threads: int | None, spec: EncoderSpec) -> Encoder:
    """The model of this process, loaded once."""
    return Models(cached, threads).encoder(spec)
