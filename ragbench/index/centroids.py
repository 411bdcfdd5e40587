"""The mean vectors of documents, which become a part of the scores of their chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragbench.base.types import Ranking
from ragbench.index.chunks import ChunkTable
from ragbench.index.dense import DenseIndex

VERSION = 1
_VECTORS = "centroids.npy"


def build_centroids(folder: Path, table: ChunkTable, vectors: NDArray[np.float32]) -> None:
    """Write the mean of the unit vectors of every document's chunks, scaled to length 1 (0 without chunks)."""
    sums = np.zeros((table.n_documents, vectors.shape[1] if vectors.ndim == 2 else 0), dtype=np.float64)
    np.add.at(sums, table.document[: table.n_retrievable], vectors)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    np.save(folder / _VECTORS, (sums / np.where(lengths, lengths, 1.0)).astype(np.float32), allow_pickle=False)


class Centroids:
    """Mean vectors by document row, next to the vectors of the chunks."""

    def __init__(self, folder: Path, table: ChunkTable, dense: DenseIndex) -> None:
        """Open the artefact in `folder`."""
        self.vectors: NDArray[np.float32] = np.load(folder / _VECTORS, mmap_mode="r", allow_pickle=False)
        self._table, self._dense = table, dense

    def search(
        self, query: NDArray[np.float32], found: Ranking, share: float, depth: int, allowed: NDArray[np.bool_] | None
    ) -> Ranking:
        """The best `depth` chunks by (1 - share) * cosine with the chunk + share * cosine with its document's mean.

        Candidates are the chunks `found` by their own vectors and all chunks of the `depth` documents nearest by mean.
        """
        means = self.vectors @ query
        nearest = np.lexsort((np.arange(len(means)), -means))[:depth]
        chunks = np.unique(np.concatenate([found.chunks, self._table.chunks_of_each(nearest)[0]]))
        if allowed is not None:
            chunks = chunks[allowed[chunks]]
        return Ranking.of(chunks, self.scores(query, chunks, share), depth)

    def scores(self, query: NDArray[np.float32], chunks: NDArray[np.int32], share: float) -> NDArray[np.float32]:
        """(1 - share) * cosine with the chunk + share * cosine with its document's mean, shape (n,)."""
        means = self.vectors[self._table.document[chunks]] @ query
        cosines = self._dense.vectors[chunks] @ query
        return np.asarray((1 - share) * cosines + share * means, dtype=np.float32)
