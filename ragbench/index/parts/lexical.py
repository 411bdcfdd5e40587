"""Words, scored by BM25F."""

from __future__ import annotations

from ragbench.index import sharded
from ragbench.index.index import Index, StoredPart
from ragbench.index.lexical import VERSION, LexicalIndex, build_lexical
from ragbench.index.shards import Building
from ragbench.index.texts import lexical_rows


def of_source(source: str) -> StoredPart[LexicalIndex]:
    """The words of a source; `""` is the source of the index itself."""

    def build(building: Building, index: Index) -> None:
        table, spec = index.chunks, index.spec.words(source)
        total = table.n_retrievable if spec.unit == "chunk" else table.n_documents
        if building.in_shards(table.n_documents) or building.shards.kept is not None:
            tick = building.ticks("indexing terms", total)
            sharded.build_lexical(building.folder, spec, index.artefact("chunks").folder, building.shards, tick)
        else:
            rows = lexical_rows(table, spec.fields, spec.unit)
            build_lexical(building.folder, spec, building.with_progress("indexing terms", rows, total))

    return StoredPart(
        f"lexical:{source}" if source else "lexical",
        inputs=lambda index: [index.fingerprint("chunks"), VERSION, index.spec.words(source)],
        build=build,
        open=lambda folder, index: LexicalIndex(folder, index.spec.words(source), memory=index.memory),
    )


PART = of_source("")
