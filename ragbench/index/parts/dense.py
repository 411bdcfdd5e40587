"""Unit vectors of the chunks, searched by inner product."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ragbench.index import sharded
from ragbench.index.dense import VERSION, DenseIndex, build_dense
from ragbench.index.index import Index, StoredPart
from ragbench.index.shards import Building


def of_source(source: str) -> StoredPart[DenseIndex]:
    """The vectors of a source; `""` is the source of the index itself."""
    suffix = f":{source}" if source else ""

    def inputs(index: Index) -> list[Any]:
        spec, encoder = index.spec.vectors(source), index.part(f"encoder{suffix}")
        kind = spec.dense.with_kind_for(index.chunks.n_retrievable)
        return [index.fingerprint("chunks"), VERSION, kind, encoder.passage_digest, spec.passage]

    def build(building: Building, index: Index) -> dict[str, Any]:
        table, spec = index.chunks, index.spec.vectors(source)
        tick = building.ticks("embedding", table.n_retrievable)
        if building.in_shards(table.n_documents):
            folder, models = index.artefact("chunks").folder, index.models
            sharded.build_dense(building.folder, spec, folder, models, building.shards, tick)
            return {}
        encoder = index.part(f"encoder{suffix}")
        before = Counter(getattr(encoder, "origins", ()))
        build_dense(building.folder, spec.dense, encoder.encode_passages(spec.passage.passages(table), tick))
        numerics = {"here": getattr(encoder, "numerics", "")}
        if (counts := Counter(getattr(encoder, "origins", ())) - before)["shipped"]:
            numerics["shipped"] = encoder.shipped.numerics
        return {"vectors": dict(counts), "numerics": numerics}

    return StoredPart(
        f"dense{suffix}",
        inputs=inputs,
        build=build,
        open=lambda folder, index: DenseIndex(folder, index.spec.vectors(source).dense),
    )


PART = of_source("")
