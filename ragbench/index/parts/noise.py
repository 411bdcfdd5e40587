"""The best cosines of queries that have nothing to do with the collection."""

from __future__ import annotations

from ragbench.index.index import StoredPart
from ragbench.index.noise import VERSION, Noise, build_noise


def of_source(source: str) -> StoredPart[Noise]:
    """The noise in the vectors of a source; `""` is the source of the index itself."""
    suffix = f":{source}" if source else ""
    return StoredPart(
        f"noise{suffix}",
        inputs=lambda index: [index.fingerprint(f"dense{suffix}"), index.fingerprint(f"encoder{suffix}"), VERSION],
        build=lambda building, index: build_noise(
            building.folder, index.part(f"dense{suffix}"), index.part(f"encoder{suffix}")
        ),
        open=lambda folder, index: Noise(folder, index.part(f"dense{suffix}")),
    )


PART = of_source("")
