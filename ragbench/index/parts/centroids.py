"""The mean vectors of documents."""

from __future__ import annotations

from ragbench.index.dense import CENTROIDS_VERSION, Centroids, build_centroids
from ragbench.index.index import StoredPart


def of_source(source: str) -> StoredPart[Centroids]:
    """The means of a source's vectors; `""` is the source of the index itself."""
    suffix = f":{source}" if source else ""
    return StoredPart(
        f"centroids{suffix}",
        inputs=lambda index: [index.fingerprint(f"dense{suffix}"), CENTROIDS_VERSION],
        build=lambda building, index: build_centroids(
            building.folder, index.chunks, index.part(f"dense{suffix}").vectors
        ),
        open=lambda folder, index: Centroids(folder, index.chunks, index.part(f"dense{suffix}")),
    )


PART = of_source("")
