"""Links between documents and their communities."""

from __future__ import annotations

from ragbench.index.graph import VERSION, GraphIndex, build_graph
from ragbench.index.index import StoredPart

PART = StoredPart(
    "graph",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION],
    build=lambda building, index: build_graph(building.folder, index.chunks),
    open=lambda folder, index: GraphIndex(folder, index.chunks),
)
