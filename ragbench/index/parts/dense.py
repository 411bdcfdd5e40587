"""Unit vectors of the chunks, searched by inner product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragbench.index import sharded
from ragbench.index.dense import VERSION, DenseIndex, build_dense
from ragbench.index.part import Building, StoredPart
from ragbench.index.texts import passages_of

if TYPE_CHECKING:
    from ragbench.index.index import Index


def _inputs(index: Index) -> list[Any]:
    return [
        index.fingerprint("chunks"),
        VERSION,
        index.spec.dense.chosen(index.chunks.n_retrievable),
        index.encoder.passage_digest,
        index.spec.headings,
    ]


def _build(building: Building, index: Index) -> None:
    table, spec = index.chunks, index.spec
    tick = building.ticks("embedding", table.n_retrievable)
    if building.in_shards(table.n_documents):
        source, encoder = index.artefact("chunks").folder, (index.models, spec.encoder)
        sharded.build_dense(building.folder, spec.dense, source, spec.headings, encoder, building.shards, tick)
    else:
        vectors = index.encoder.encode_passages(passages_of(table, spec.headings), tick)
        build_dense(building.folder, spec.dense, vectors)


PART = StoredPart(
    "dense", inputs=_inputs, build=_build, open=lambda folder, index: DenseIndex(folder, index.spec.dense)
)
