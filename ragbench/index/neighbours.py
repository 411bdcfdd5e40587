"""The FAISS structures behind dense search, and the one to choose for a number of vectors.

| kind      | is                                                    | answers    | next to the vectors         |
|-----------|-------------------------------------------------------|------------|----------------------------|
| `flat`    | every vector compared                                 | exactly    | nothing                    |
| `hnsw`    | a graph of near vectors, walked from the top          | nearly all | a copy and `m` links each  |
| `ivf_sq8` | cells of near vectors, each component in one byte     | nearly all | a quarter                  |

Malkov and Yashunin 2018 (HNSW); Jegou et al. 2011 (inverted files); Douze et al. 2024 (FAISS). Everything is built
with one thread and fixed seeds: the same vectors give the same bytes (a graph would depend on the threads' timing).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ragbench.base.errors import IndexError_

_Kind = Literal["flat", "hnsw", "ivf_sq8"]

# Up to the first number an exact search stays under 3 ms and needs no building; above the second a graph takes hours
# of one thread to build. Measured in docs/research/scaling.md.
FLAT_UP_TO, HNSW_UP_TO = 50_000, 200_000

_FAR = 2**31 - 1
_PER_LIST = 50  # vectors of the sample for every cell; FAISS warns below 39
_ITERATIONS = 10
_SEED = 13
_AT_ONCE = 50_000  # vectors read from the file at a time


def kind_for(n_vectors: int) -> _Kind:
    """The structure that `index.dense.kind=auto` chooses for a number of vectors."""
    if n_vectors <= FLAT_UP_TO:
        return "flat"
    return "hnsw" if n_vectors <= HNSW_UP_TO else "ivf_sq8"


def _lists_for(n_vectors: int) -> int:
    """The default number of cells of `ivf_sq8`: 4 sqrt(n), at most one per vector."""
    return max(1, min(n_vectors, round(4 * math.sqrt(n_vectors))))


def probes_for(lists: int) -> int:
    """The default number of cells that `ivf_sq8` searches.

    On a million synthetic vectors 256 of 4,000 find 94.5% of the ten nearest in 7 ms, 400 find 96.8% in 11 ms.
    """
    return max(256, lists // 10)


def build_hnsw(path: Path, vectors: NDArray[np.float32], m: int, ef_construction: int) -> None:
    """Write the graph of the vectors, float32 (n, dim), to `path`."""
    faiss = library()
    index = faiss.IndexHNSWFlat(vectors.shape[1], m, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = ef_construction
    for start in range(0, len(vectors), _AT_ONCE):
        index.add(np.ascontiguousarray(vectors[start : start + _AT_ONCE]))
    faiss.write_index(index, str(path))


def build_ivf(path: Path, vectors: NDArray[np.float32], lists: int | None) -> None:
    """Write cells around the centres of a seeded sample to `path`, each vector component in one byte."""
    faiss = library()
    n, dim = vectors.shape
    lists = min(lists or _lists_for(n), n)
    index = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(dim), dim, lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    )
    index.cp.niter, index.cp.seed = _ITERATIONS, _SEED
    index.cp.min_points_per_centroid = 1  # no warning for a collection of few vectors
    size = min(n, lists * _PER_LIST)
    sample = np.sort(np.random.default_rng(_SEED).choice(n, size, replace=False))
    with _matrix_products(faiss):
        index.train(np.ascontiguousarray(vectors[sample]))
        for start in range(0, n, _AT_ONCE):
            index.add(np.ascontiguousarray(vectors[start : start + _AT_ONCE]))
    faiss.write_index(index, str(path))


def open_structure(path: Path) -> Any:
    """Open a structure, mapped into memory: processes share its pages, and only the pages used are read."""
    faiss = library()
    return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)


@cache
def has_library() -> bool:
    """Whether FAISS is installed; a small installation does without, as long as every vector is compared."""
    return find_spec("faiss") is not None


class Compared:
    """What `IndexFlatIP` of FAISS does, by numpy: the same but for rounding, in about three times the time."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = vectors

    def search(
        self, queries: NDArray[np.float32], wanted: int, params: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and numbers of the `wanted` nearest vectors of each query that `params` allows; -1 where none is."""
        scores = np.full((len(queries), wanted), -np.inf, dtype=np.float32)
        numbers = np.full((len(queries), wanted), -1, dtype=np.int64)
        for row, query in enumerate(queries):  # each alone, so that a score does not depend on the other queries
            found = self._vectors @ query
            allowed = np.arange(len(found)) if params is None else np.flatnonzero(params[: len(found)])
            if wanted < len(allowed):
                allowed = allowed[np.argpartition(-found[allowed], wanted - 1)[:wanted]]
            allowed = allowed[np.argsort(-found[allowed], kind="stable")]
            scores[row, : len(allowed)], numbers[row, : len(allowed)] = found[allowed], allowed
        return scores, numbers


def library() -> Any:
    """FAISS, set up so that results do not depend on the number of queries in a call or on threads.

    Call it before every use: the number of threads is a setting of the calling thread. Above a number of queries FAISS
    changes to matrix products, whose rounding differs from that of single queries; here the threshold is never reached
    (measured at 20,000 x 384: 1.1 ms a query, against 5.9 ms alone in a matrix product). One thread, because the
    threads of FAISS wait for one another: a single query takes 46 ms instead of 1.4 ms on two busy CPUs.
    """
    if not has_library():
        raise IndexError_("this index is searched by FAISS, which is not installed: run pip install faiss-cpu")
    import faiss

    faiss.cvar.distance_compute_blas_threshold = _FAR
    faiss.omp_set_num_threads(1)
    return faiss


@contextmanager
def _matrix_products(faiss: Any) -> Iterator[None]:
    """Allow matrix products while building, where they are ten times as fast and results are not compared."""
    faiss.cvar.distance_compute_blas_threshold = 20
    try:
        yield
    finally:
        faiss.cvar.distance_compute_blas_threshold = _FAR
