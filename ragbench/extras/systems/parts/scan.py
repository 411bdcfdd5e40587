"""Substrings of paths and contents."""

from __future__ import annotations

from ragbench.extras.systems.index.scan import VERSION, ScanIndex, build_scan
from ragbench.index.index import StoredPart

PART = StoredPart(
    "scan",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION],
    build=lambda building, index: build_scan(building.folder, index.documents),
    open=lambda folder, index: ScanIndex(folder, index.memory),
)
