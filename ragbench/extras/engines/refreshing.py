"""Take changed documents into an engine: one transaction, in which only what has changed is written."""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path

from ragbench.extras.engines import content, opened
from ragbench.extras.engines.content import temporary_folder
from ragbench.extras.engines.words import Terms
from ragbench.extras.ship.refresh import Refreshed, Refresher
from ragbench.index.index import Index


class EngineRefresher(Refresher):
    """Keeps an engine up to date with a folder of markdown; as `Refresher` does with a bundle."""

    def __init__(
        self,
        location: str | Path,
        corpus: Path | None = None,
        *,
        threads: int | None = None,
    ) -> None:
        self._engine = opened.connect(location, writable=True)
        folder = temporary_folder("ragbench-engine")
        self._clean = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._unpacked = self._engine.version()
        opened.unpack(self._engine, folder)
        super().__init__(folder, corpus, threads=threads)

    def refresh(self, allow_shrink: bool = False) -> Refreshed:
        """Serve what is in the folder now. Raises CorpusError when less than half of the documents are left."""
        with self._engine.transaction():
            if self._engine.version() != self._unpacked:
                shutil.rmtree(self.folder)
                self.folder.mkdir()
                opened.unpack(self._engine, self.folder)
            self._unpacked = ""
            refreshed = super().refresh(allow_shrink)
            if refreshed.anything:
                self._engine.finish({}, opened.pack(self.folder), {})
            unpacked = self._engine.version()
        self._unpacked = unpacked
        return refreshed

    def close(self) -> None:
        """Close the engine and delete what was unpacked."""
        self._engine.close()
        self._clean()

    def _open(self) -> None:
        super()._open()
        self._settings.__dict__["pipeline"] = opened.pipeline_over(self._engine, self._settings)

    def _ready(self, index: Index) -> None:
        """Write the documents that differ from those of the engine."""
        known_digests, plan = dict(self._engine.digests()), self._engine.plan
        terms, changed = Terms(plan.analyzer), []
        for row in content.rows(index, plan):
            if known_digests.pop(row.docno, None) != row.digest:
                changed.append(row)
        texts = {content.passage_key(chunk.passage): chunk.passage for row in changed for chunk in row.chunks}
        vectors = dict(self._engine.vectors(texts))
        for docno in (*known_digests, *(row.docno for row in changed)):
            self._engine.drop(docno)
        new = sorted(texts.keys() - vectors.keys())
        if new and "dense" in plan.depths:
            vectors |= dict(zip(new, index.encoder.encode_passages([texts[key] for key in new]), strict=True))
        for row in changed:
            chunk_vectors = [
                vectors[content.passage_key(chunk.passage)] if "dense" in plan.depths else None for chunk in row.chunks
            ]
            self._engine.put(row, chunk_vectors, terms)
        self._engine.finish(terms.forms(), None, {})
