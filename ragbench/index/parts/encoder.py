"""The model that embeds queries and passages."""

from __future__ import annotations

from ragbench.index.index import Part
from ragbench.models import Encoder


def of_source(source: str) -> Part[Encoder]:
    """The model of a source of vectors; `""` is the source of the index itself."""
    name = f"encoder:{source}" if source else "encoder"
    return Part(
        name,
        fingerprint=lambda index: index.part(name).digest,
        open=lambda index: index.models.encoder(index.spec.vectors(source).encoder),
    )


PART = of_source("")
