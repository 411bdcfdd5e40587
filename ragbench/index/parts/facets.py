"""The properties that documents can be filtered by."""

from __future__ import annotations

from ragbench.index.filters import Facets
from ragbench.index.index import Part

PART = Part(
    "facets",
    fingerprint=lambda index: index.collection,
    open=lambda index: Facets(index.chunks, index.modified, getattr(index.spec.chunker, "method", "")),
)
