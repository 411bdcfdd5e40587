"""A Lucene index made of pieces, which later builds of similar collections use again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base.errors import IndexError_
from ragbench.base.fingerprint import short_digest, text_digest
from ragbench.base.progress import task_ticks
from ragbench.index import lexical
from ragbench.index.chunks import ChunkTable
from ragbench.index.shards import fill_shard
from ragbench.index.texts import lexical_rows

if TYPE_CHECKING:
    from ragbench.index.index import Index
    from ragbench.index.lexical import LexicalSpec
    from ragbench.index.shards import Building, Tick

_PIECE_DOCUMENTS = 256


def build_words(kept: Path, name: str, building: Building, index: Index) -> None:
    """Build the part of an index with this name (`lexical`), with pieces in a folder of its own below `kept`."""
    table, spec = index.chunks, index.spec.words(name.partition(":")[2])
    tick = task_ticks("indexing terms", table.n_retrievable if spec.unit == "chunk" else table.n_documents)
    source = index.artefact("chunks").folder
    build_from_pieces(building.folder, spec, source, kept / short_digest([name, index.spec]), tick)


def build_from_pieces(folder: Path, spec: LexicalSpec, source: Path, kept: Path, tick: Tick) -> None:
    """The Lucene index of the chunk table in `source`, with a segment for every 256 documents.

    The folder `kept` holds the segments, named by their content: unchanged ones are those of earlier builds.
    """

    def pieces() -> list[Path]:
        table, pieces_read = ChunkTable(source), []
        _ = table.labels  # read once for all parts
        for first in range(0, table.n_documents, _PIECE_DOCUMENTS):
            last = min(first + _PIECE_DOCUMENTS, table.n_documents)
            rows = list(lexical_rows(table.part(first, last), spec.fields, spec.unit))
            number = first if spec.unit == "document" else table.chunks_of(first)[0]
            piece = kept / text_digest(json.dumps([lexical.VERSION, spec.fields, spec.analyzer, number, rows]), 32)
            if not piece.is_dir():
                kept.mkdir(parents=True, exist_ok=True)
                fill_shard(partial(_index_rows, spec, rows, number), piece)
            pieces_read.append(piece)
            tick(len(rows))
        return pieces_read

    places = pieces()
    try:
        lexical.merge_lexical(folder, spec, places)
    except IndexError_:  # a piece is damaged
        shutil.rmtree(kept)
        lexical.merge_lexical(folder, spec, pieces())
    for unused in set(kept.iterdir()) - set(places):
        shutil.rmtree(unused, ignore_errors=True)


def _index_rows(spec: LexicalSpec, rows: Sequence[Mapping[str, str]], number: int, folder: Path) -> None:
    lexical.build_lexical(folder, spec, rows, number=number)
