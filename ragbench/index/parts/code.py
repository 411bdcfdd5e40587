"""Code blocks, by identifiers and their parts."""

from __future__ import annotations

from ragbench.index.code import VERSION, CodeIndex, build_code
from ragbench.index.index import Index, StoredPart
from ragbench.index.shards import Building


def _build(building: Building, index: Index) -> None:
    blocks = index.chunks.blocks.select(["code", "language"]).to_pylist()
    build_code(building.folder, ((number, block["code"], block["language"]) for number, block in enumerate(blocks)))


PART = StoredPart(
    "code",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION],
    build=_build,
    open=lambda folder, index: CodeIndex(folder, index.memory),
)
