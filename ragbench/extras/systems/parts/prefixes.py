"""Terms and their beginnings in five fields, scored by BM25+ among candidates."""

from __future__ import annotations

from ragbench.extras.systems.index.prefixes import VERSION, PrefixIndex, build_prefixes
from ragbench.index.index import StoredPart

PART = StoredPart(
    "prefixes",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION],
    build=lambda building, index: build_prefixes(building.folder, index.chunks),
    open=lambda folder, index: PrefixIndex(folder),
)
