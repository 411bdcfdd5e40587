"""Words, scored by BM25F."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragbench.index import sharded
from ragbench.index.lexical import VERSION, LexicalIndex, build_lexical
from ragbench.index.part import Building, StoredPart
from ragbench.index.texts import lexical_rows

if TYPE_CHECKING:
    from ragbench.index.index import Index


def _build(building: Building, index: Index) -> None:
    table, spec = index.chunks, index.spec.lexical
    if building.in_shards(table.n_documents):
        tick = building.ticks("indexing words", table.n_retrievable)
        sharded.build_lexical(building.folder, spec, index.artefact("chunks").folder, building.shards, tick)
    else:
        rows = lexical_rows(table, [name for name, _ in spec.fields])
        build_lexical(building.folder, spec, building.counted("indexing words", rows, table.n_retrievable))


PART = StoredPart(
    "lexical",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION, index.spec.lexical],
    build=_build,
    open=lambda folder, index: LexicalIndex(folder, index.spec.lexical, index.memory),
)
