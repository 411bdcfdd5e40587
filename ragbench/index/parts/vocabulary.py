"""The collection's words and their vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragbench.index.part import Building, StoredPart
from ragbench.index.vocabulary import VERSION, Vocabulary, build_vocabulary, frequent_terms

if TYPE_CHECKING:
    from ragbench.index.index import Index


def _inputs(index: Index) -> list[Any]:
    return [index.fingerprint("chunks"), VERSION, index.spec.vocabulary, index.encoder.passage_digest]


def _build(building: Building, index: Index) -> None:
    texts = index.chunks.texts(0, index.chunks.n_retrievable)
    build_vocabulary(building.folder, frequent_terms(texts, index.spec.vocabulary), index.encoder)


PART = StoredPart("vocabulary", inputs=_inputs, build=_build, open=lambda folder, index: Vocabulary(folder))
