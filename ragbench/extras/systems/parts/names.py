"""The names of documents: ids, ends of paths, titles and aliases."""

from __future__ import annotations

from ragbench.extras.systems.index.names import NoteNames
from ragbench.index.index import Part

PART = Part("names", fingerprint=lambda index: index.collection, open=lambda index: NoteNames(index.chunks))
