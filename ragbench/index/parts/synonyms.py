"""WordNet's synonyms, the same for every collection."""

from __future__ import annotations

from ragbench.index.index import StoredPart
from ragbench.index.synonyms import VERSION, Synonyms, build_synonyms, source_version

PART = StoredPart(
    "synonyms",
    inputs=lambda index: [VERSION, source_version()],
    build=lambda building, index: build_synonyms(building.folder),
    open=lambda folder, index: Synonyms(folder),
)
