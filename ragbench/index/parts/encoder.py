"""The model that embeds queries and passages."""

from __future__ import annotations

from ragbench.index.part import Part

PART = Part(
    "encoder",
    fingerprint=lambda index: index.encoder.digest,
    open=lambda index: index.models.encoder(index.spec.encoder),
)
