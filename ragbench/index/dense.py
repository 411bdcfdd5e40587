"""The dense artefact: unit vectors of the chunks, searched by inner product with FAISS.

Exact search (`flat`) is the default; `hnsw` trades recall for speed on large collections (Malkov and Yashunin, 2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ragbench.errors import ConfigError
from ragbench.types import Ranking

VERSION = 1
_VECTORS, _INDEX = "vectors.npy", "index.faiss"


@dataclass(frozen=True)
class DenseSpec:
    """What shapes the dense artefact besides the model and the passages.

    `kind`: `flat` or `hnsw`. `m`: links per node (2-64). `ef_construction`, `ef_search`: breadth of the beam while
    building and searching (1-4096).
    """

    kind: Literal["flat", "hnsw"] = "flat"
    m: int = 32
    ef_construction: int = 200
    ef_search: int = 128

    def __post_init__(self) -> None:
        if not 2 <= self.m <= 64:
            raise ConfigError(f"index.dense.m must be between 2 and 64, got {self.m}")
        for name in ("ef_construction", "ef_search"):
            if not 1 <= getattr(self, name) <= 4096:
                raise ConfigError(f"index.dense.{name} must be between 1 and 4096, got {getattr(self, name)}")


def build_dense(folder: Path, spec: DenseSpec, vectors: NDArray[np.float32]) -> None:
    """Write the vectors, float32 of shape (n, dim) with unit rows, and the searchable index over them."""
    faiss = _faiss()
    np.save(folder / _VECTORS, vectors, allow_pickle=False)
    if spec.kind == "flat":
        return
    index = faiss.IndexHNSWFlat(vectors.shape[1], spec.m, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = spec.ef_construction
    # Insertion by several threads would make the graph depend on their timing.
    with _one_thread(faiss):
        index.add(np.ascontiguousarray(vectors))
    faiss.write_index(index, str(folder / _INDEX))


class DenseIndex:
    """Nearest chunks by inner product; equal scores are ordered by chunk number, also at the cut-off."""

    def __init__(self, folder: Path, spec: DenseSpec) -> None:
        """Open the artefact in `folder`."""
        self.spec = spec
        self._folder = folder
        self.vectors: NDArray[np.float32] = np.load(folder / _VECTORS, mmap_mode="r", allow_pickle=False)

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def _index(self) -> Any:
        faiss = _faiss()
        if self.spec.kind == "hnsw":
            index = faiss.read_index(str(self._folder / _INDEX))
            index.hnsw.efSearch = self.spec.ef_search
            return index
        index = faiss.IndexFlatIP(self.vectors.shape[1])
        index.add(np.ascontiguousarray(self.vectors))
        return index

    def search(
        self, queries: NDArray[np.float32], depth: int, allowed: NDArray[np.bool_] | None = None
    ) -> list[Ranking]:
        """The best `depth` chunks of every query, float32 (n, dim); `allowed` (n_chunks,) restricts the search."""
        if not len(self) or not len(queries):
            return [Ranking.empty() for _ in queries]
        parameters = self._parameters(allowed)
        wanted = min(depth + 16, len(self))
        scores, chunks = self._index.search(queries, wanted, params=parameters)
        return [
            self._exact(query, scores[row], chunks[row], depth, wanted, parameters) for row, query in enumerate(queries)
        ]

    def _exact(
        self,
        query: NDArray[np.float32],
        scores: NDArray[np.float32],
        chunks: NDArray[np.int64],
        depth: int,
        wanted: int,
        parameters: Any,
    ) -> Ranking:
        """Look deeper while a tie may cross the cut-off, then order ties by chunk number."""
        while wanted < len(self) and len(scores) > depth and scores[-1] == scores[depth - 1] and chunks[-1] >= 0:
            wanted = min(2 * wanted, len(self))
            deeper, numbers = self._index.search(query[None, :], wanted, params=parameters)
            scores, chunks = deeper[0], numbers[0]
        found = chunks >= 0
        return Ranking.of(chunks[found], scores[found], depth)

    def _parameters(self, allowed: NDArray[np.bool_] | None) -> Any:
        if allowed is None:
            return None
        faiss = _faiss()
        selector = faiss.IDSelectorBatch(np.flatnonzero(allowed[: len(self)]).astype(np.int64))
        if self.spec.kind == "hnsw":
            return faiss.SearchParametersHNSW(sel=selector, efSearch=self.spec.ef_search)
        return faiss.SearchParameters(sel=selector)

    def similarities(self, chunks: Sequence[int] | NDArray[np.int32]) -> NDArray[np.float32]:
        """Cosine similarity of chunks to each other, float32 (n, n)."""
        rows = np.asarray(self.vectors[np.asarray(chunks)], dtype=np.float32)
        return rows @ rows.T


def _faiss() -> Any:
    """FAISS with results that depend neither on the number of queries in a call nor on threads.

    Above a number of queries FAISS changes to matrix products, whose rounding differs from that of single queries; the
    threshold is moved out of reach (measured at 20,000 x 384: 1.1 ms a query, against 5.9 ms alone in a matrix
    product).
    """
    import faiss

    faiss.cvar.distance_compute_blas_threshold = 2**31 - 1
    return faiss


@contextmanager
def _one_thread(faiss: Any) -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
