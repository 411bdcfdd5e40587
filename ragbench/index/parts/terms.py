"""Terms of documents and chunks, for a learned ranking."""

from __future__ import annotations

from ragbench.index.index import StoredPart
from ragbench.index.terms import VERSION, TermIndex, build_terms

PART = StoredPart(
    "terms",
    inputs=lambda index: [index.fingerprint("chunks"), index.spec.lexical.analyzer, VERSION],
    build=lambda building, index: build_terms(building.folder, index.chunks, index.spec.lexical.analyzer),
    open=lambda folder, index: TermIndex(folder, index.chunks, index.spec.lexical.analyzer),
)
