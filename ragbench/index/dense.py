"""The dense artefact: unit vectors of the chunks, searched by inner product with FAISS.

The vectors stay on disk and are mapped into memory; they are searched by one of these structures:

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
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from ragbench.base import progress
from ragbench.base.options import Count, Validated, section
from ragbench.base.rankings import Ranking
from ragbench.base.types import IndexError_, ModelError
from ragbench.index.artefacts import misfit
from ragbench.index.chunks import ChunkTable
from ragbench.index.parts import Part, StoredPart, with_rows

if TYPE_CHECKING:
    from ragbench.index.index import Index
    from ragbench.models import Encoder

# Up to the first number an exact search stays under 3 ms and needs no building; above the second a graph takes hours
# of one thread to build. Measured in docs/research/scaling.md.
FLAT_UP_TO, HNSW_UP_TO = 50_000, 200_000

_FAR = 2**31 - 1

_PER_LIST = 50  # vectors of the sample for every cell; FAISS warns below 39

_ITERATIONS = 10

_SEED = 13

_AT_ONCE = 50_000  # vectors read from the file at a time


def _probes_for(lists: int) -> int:
    """The default number of cells that `ivf_sq8` searches.

    On a million synthetic vectors 256 of 4,000 find 94.5% of the ten nearest in 7 ms, 400 find 96.8% in 11 ms.
    """
    return max(256, lists // 10)


def _build_hnsw(path: Path, vectors: NDArray[np.float32], m: int, ef_construction: int) -> None:
    """Write the graph of the vectors, float32 (n, dim), to `path`."""
    faiss = library()
    index = faiss.IndexHNSWFlat(vectors.shape[1], m, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = ef_construction
    for start in range(0, len(vectors), _AT_ONCE):
        index.add(np.ascontiguousarray(vectors[start : start + _AT_ONCE]))
    faiss.write_index(index, str(path))


def _build_ivf(path: Path, vectors: NDArray[np.float32], lists: int | None) -> None:
    """Write cells around the centres of a seeded sample to `path`, each vector component in one byte."""
    faiss = library()
    n, dim = vectors.shape
    lists = min(lists or round(4 * math.sqrt(n)), n)
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


def _open_structure(path: Path) -> Any:
    """Open a structure, mapped into memory: processes share its pages, and only the pages used are read."""
    faiss = library()
    return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)


@cache
def _has_library() -> bool:
    """Whether FAISS is installed; a small installation does without, as long as every vector is compared."""
    return find_spec("faiss") is not None


class _Compared:
    """What `IndexFlatIP` of FAISS does, by numpy: the same but for rounding, in about three times the time."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = vectors

    def search(
        self, queries: NDArray[np.float32], depth: int, params: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and numbers of the `depth` nearest vectors of each query that `params` allows; -1 where none is."""
        scores = np.full((len(queries), depth), -np.inf, dtype=np.float32)
        numbers = np.full((len(queries), depth), -1, dtype=np.int64)
        for row, query in enumerate(queries):  # each alone, so that a score does not depend on the other queries
            similarity = self._vectors @ query
            allowed = np.arange(len(similarity)) if params is None else np.flatnonzero(params[: len(similarity)])
            if depth < len(allowed):
                allowed = allowed[np.argpartition(-similarity[allowed], depth - 1)[:depth]]
            allowed = allowed[np.argsort(-similarity[allowed], kind="stable")]
            scores[row, : len(allowed)], numbers[row, : len(allowed)] = similarity[allowed], allowed
        return scores, numbers


def library() -> Any:
    """FAISS, set up so that results do not depend on the number of queries in a call or on threads.

    Call it before every use: the number of threads is a setting of the calling thread. Above a number of queries FAISS
    changes to matrix products, whose rounding differs from that of single queries; here the threshold is never reached
    (measured at 20,000 x 384: 1.1 ms a query, against 5.9 ms alone in a matrix product). One thread, because the
    threads of FAISS wait for one another: a single query takes 46 ms instead of 1.4 ms on two busy CPUs.
    """
    if not _has_library():
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


VERSION = 1

VECTORS = "vectors.npy"

_INDEX = "index.faiss"

# Candidates of compressed vectors, times the depth, that are scored again by the vectors themselves.
_RESCORED = 2


@section("index.dense")
@dataclass(frozen=True)
class DenseSpec(Validated):
    """The settings of the dense artefact in addition to the model and the passages."""

    # flat (exact), hnsw, ivf_sq8, or auto: by the number of chunks
    kind: Literal["flat", "hnsw", "ivf_sq8", "auto"] = "flat"
    m: Annotated[int, Interval(ge=2, le=64)] = 32  # links per node of a graph
    ef_construction: Annotated[int, Interval(ge=1, le=4096)] = 200  # width of the beam while building a graph
    ef_search: Annotated[int, Interval(ge=1, le=4096)] = 128  # width of the beam while searching a graph
    lists: Count | None = None  # cells of ivf_sq8; 4 sqrt(chunks) when null
    probes: Count | None = None  # cells of ivf_sq8 that a search reads; null: a tenth, at least 256

    def with_kind_for(self, n_vectors: int) -> DenseSpec:
        """The same settings with `auto` replaced by the kind for a number of vectors."""
        if self.kind != "auto":
            return self
        if n_vectors <= FLAT_UP_TO:
            return replace(self, kind="flat")
        return replace(self, kind="hnsw" if n_vectors <= HNSW_UP_TO else "ivf_sq8")


def build_dense(folder: Path, spec: DenseSpec, vectors: NDArray[np.float32]) -> None:
    """Write the vectors, float32 of shape (n, dim) with unit rows, and the searchable index over them."""
    np.save(folder / VECTORS, vectors, allow_pickle=False)
    build_neighbours(folder, spec)


def build_neighbours(folder: Path, spec: DenseSpec) -> None:
    """Write the searchable index over the vectors that are already in `folder`."""
    vectors = np.load(folder / VECTORS, mmap_mode="r", allow_pickle=False)
    kind = spec.with_kind_for(len(vectors)).kind
    if kind == "hnsw":
        _build_hnsw(folder / _INDEX, vectors, spec.m, spec.ef_construction)
    elif kind == "ivf_sq8" and len(vectors):
        _build_ivf(folder / _INDEX, vectors, spec.lists)


class DenseIndex:
    """Nearest chunks by inner product; equal scores are ordered by chunk number, also at the cut-off."""

    def __init__(self, folder: Path, spec: DenseSpec) -> None:
        """Open the artefact in `folder`."""
        self._folder = folder
        self.vectors: NDArray[np.float32] = np.load(folder / VECTORS, mmap_mode="r", allow_pickle=False)
        self.spec = spec.with_kind_for(len(self.vectors))

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def _index(self) -> Any:
        if self.spec.kind != "flat":
            structure = _open_structure(self._folder / _INDEX)
            if (structure.ntotal, structure.d) != self.vectors.shape:
                raise misfit(self._folder)
            return structure
        if not _has_library():
            return _Compared(self.vectors)
        index = library().IndexFlatIP(self.vectors.shape[1])
        index.add(np.ascontiguousarray(self.vectors))
        return index

    def search(
        self, queries: NDArray[np.float32], depth: int, allowed: NDArray[np.bool_] | None = None
    ) -> list[Ranking]:
        """The best `depth` chunks of every query, float32 (n, dim); `allowed` (n_chunks,) restricts the search."""
        if not len(self) or not len(queries):
            return [Ranking.empty() for _ in queries]
        if queries.shape[1:] != self.vectors.shape[1:]:
            width, stored = queries.shape[1], self.vectors.shape[1]
            raise ModelError(f"the encoder gives vectors of length {width} for queries and {stored} for passages")
        parameters = self._parameters(allowed)
        if self.spec.kind == "ivf_sq8":
            _, candidates = self._index.search(queries, min(_RESCORED * depth, len(self)), params=parameters)
            return [self._rescored(query, candidates[row], depth) for row, query in enumerate(queries)]
        count = min(depth + 16, len(self))
        scores, chunks = self._index.search(queries, count, params=parameters)
        return [
            self._exact(query, scores[row], chunks[row], depth, count, parameters) for row, query in enumerate(queries)
        ]

    def _exact(
        self,
        query: NDArray[np.float32],
        scores: NDArray[np.float32],
        chunks: NDArray[np.int64],
        depth: int,
        candidates: int,
        parameters: Any,
    ) -> Ranking:
        """Search deeper while a tie may cross the cut-off, then order ties by chunk number."""
        while candidates < len(self) and len(scores) > depth and scores[-1] == scores[depth - 1] and chunks[-1] >= 0:
            candidates = min(2 * candidates, len(self))
            deeper, numbers = self._index.search(query[None, :], candidates, params=parameters)
            scores, chunks = deeper[0], numbers[0]
        hits = chunks >= 0
        return Ranking.of(chunks[hits], scores[hits], depth)

    def _rescored(self, query: NDArray[np.float32], candidates: NDArray[np.int64], depth: int) -> Ranking:
        """Candidates of the compressed vectors, scored and ordered by the full vectors."""
        chunks = np.sort(candidates[candidates >= 0])
        return Ranking.of(chunks, self.vectors[chunks] @ query, depth)

    def _parameters(self, allowed: NDArray[np.bool_] | None) -> Any:
        if isinstance(self._index, _Compared):
            return allowed
        faiss, selector = library(), None
        if allowed is not None:
            selector = faiss.IDSelectorBatch(np.flatnonzero(allowed[: len(self)]).astype(np.int64))
        if self.spec.kind == "hnsw":
            return faiss.SearchParametersHNSW(sel=selector, efSearch=self.spec.ef_search)
        if self.spec.kind == "ivf_sq8":
            probes = self.spec.probes or _probes_for(self._index.nlist)
            return faiss.SearchParametersIVF(sel=selector, nprobe=probes)
        return None if selector is None else faiss.SearchParameters(sel=selector)

    def similarities(self, chunks: Sequence[int] | NDArray[np.int32]) -> NDArray[np.float32]:
        """Cosine similarity of chunks to each other, float32 (n, n)."""
        rows = np.asarray(self.vectors[np.asarray(chunks)], dtype=np.float32)
        return rows @ rows.T


CENTROIDS_VERSION = 1

_CENTROIDS = "centroids.npy"


def build_centroids(folder: Path, table: ChunkTable, vectors: NDArray[np.float32]) -> None:
    """Write the mean of the unit vectors of every document's chunks, scaled to length 1 (0 without chunks)."""
    sums = np.zeros((table.n_documents, vectors.shape[1] if vectors.ndim == 2 else 0), dtype=np.float64)
    np.add.at(sums, table.document[: table.n_retrievable], vectors)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    np.save(folder / _CENTROIDS, (sums / np.where(lengths, lengths, 1.0)).astype(np.float32), allow_pickle=False)


class Centroids:
    """Mean vectors by document row, next to the vectors of the chunks."""

    def __init__(self, folder: Path, table: ChunkTable, dense: DenseIndex) -> None:
        """Open the artefact in `folder`."""
        self.vectors: NDArray[np.float32] = np.load(folder / _CENTROIDS, mmap_mode="r", allow_pickle=False)
        self._table, self._dense = table, dense

    def search(
        self, query: NDArray[np.float32], ranking: Ranking, share: float, depth: int, allowed: NDArray[np.bool_] | None
    ) -> Ranking:
        """The best `depth` chunks by (1 - share) * cosine with the chunk + share * cosine with its document's mean.

        Candidates are the chunks of `ranking` and all chunks of the `depth` documents whose mean is nearest.
        """
        means = self.vectors @ query
        nearest = np.lexsort((np.arange(len(means)), -means))[:depth]
        chunks = np.unique(np.concatenate([ranking.chunks, self._table.chunks_of_each(nearest)[0]]))
        if allowed is not None:
            chunks = chunks[allowed[chunks]]
        return Ranking.of(chunks, self.scores(query, chunks, share), depth)

    def scores(self, query: NDArray[np.float32], chunks: NDArray[np.int32], share: float) -> NDArray[np.float32]:
        """(1 - share) * cosine with the chunk + share * cosine with its document's mean, shape (n,)."""
        means = self.vectors[self._table.document[chunks]] @ query
        cosines = self._dense.vectors[chunks] @ query
        return np.asarray((1 - share) * cosines + share * means, dtype=np.float32)


def encoder_part(suffix: str) -> Part[Encoder]:
    """The model that embeds queries and passages."""
    return Part(
        f"encoder{suffix}",
        fingerprint=lambda index: index.part(f"encoder{suffix}").digest,
        open=lambda index: index.models.encoder(index.spec.vectors(suffix.removeprefix(":")).encoder),
    )


def centroids_part(suffix: str) -> StoredPart[Centroids]:
    """The mean vectors of documents."""
    return StoredPart(
        f"centroids{suffix}",
        inputs=lambda index: [index.fingerprint(f"dense{suffix}"), CENTROIDS_VERSION],
        build=lambda folder, index: build_centroids(folder, index.chunks, index.part(f"dense{suffix}").vectors),
        open=lambda folder, index: Centroids(folder, index.chunks, index.part(f"dense{suffix}")),
    )


def dense_part(suffix: str) -> StoredPart[DenseIndex]:
    """Unit vectors of the chunks, searched by inner product."""
    source = suffix.removeprefix(":")

    def inputs(index: Index) -> list[Any]:
        spec, encoder = index.spec.vectors(source), index.part(f"encoder{suffix}")
        kind = spec.dense.with_kind_for(index.chunks.n_retrievable)
        return [index.fingerprint("chunks"), VERSION, kind, encoder.passage_digest, spec.passage]

    def build(folder: Path, index: Index) -> dict[str, Any]:
        table, spec = index.chunks, index.spec.vectors(source)
        here = copy_context()  # the thread that reports first is one of the model, which sees no progress
        tick = cache(lambda: here.run(progress.task_ticks, "embedding", table.n_retrievable))

        def report(n: int) -> None:
            if n < table.n_retrievable:  # else the cache has all
                tick()(n)

        encoder = index.part(f"encoder{suffix}")
        origins_before = Counter(getattr(encoder, "origins", ()))
        build_dense(folder, spec.dense, encoder.encode_passages(spec.passage.passages(table), report))
        numerics = {"here": getattr(encoder, "numerics", "")}
        if (counts := Counter(getattr(encoder, "origins", ())) - origins_before)["shipped"]:
            numerics["shipped"] = encoder.shipped.numerics
        return {"vectors": dict(counts), "numerics": numerics}

    return StoredPart(
        f"dense{suffix}",
        inputs=inputs,
        build=build,
        open=lambda folder, index: with_rows(
            DenseIndex(folder, index.spec.vectors(source).dense), index.chunks.n_retrievable, folder / VECTORS
        ),
    )
