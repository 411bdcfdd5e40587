"""The overlap of chunks."""

from __future__ import annotations

from ragbench.index.index import StoredPart
from ragbench.index.trigrams import VERSION, TrigramIndex, build_trigrams

PART = StoredPart(
    "trigrams",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION],
    build=lambda building, index: build_trigrams(building.folder, index.chunks),
    open=lambda folder, index: TrigramIndex(folder),
)
