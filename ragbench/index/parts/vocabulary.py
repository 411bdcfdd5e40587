"""The collection's words and their vectors."""

from __future__ import annotations

from typing import Any

from ragbench.index.index import Index, StoredPart
from ragbench.index.shards import Building
from ragbench.index.vocabulary import VERSION, Vocabulary, build_vocabulary, frequent_terms


def _inputs(index: Index) -> list[Any]:
    return [index.fingerprint("chunks"), VERSION, index.spec.vocabulary, index.encoder.passage_digest]


def _build(building: Building, index: Index) -> None:
    texts = index.chunks.texts(0, index.chunks.n_retrievable)
    build_vocabulary(building.folder, frequent_terms(texts, index.spec.vocabulary), index.encoder)


PART = StoredPart("vocabulary", inputs=_inputs, build=_build, open=lambda folder, index: Vocabulary(folder))
