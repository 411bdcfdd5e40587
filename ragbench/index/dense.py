"""The dense artefact: unit vectors of the chunks, searched by inner product with FAISS.

The vectors stay on disk and are mapped into memory; `ragbench.index.neighbours` has the structures to search them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from ragbench.base.bounds import Checked, Count
from ragbench.base.errors import ModelError
from ragbench.base.types import Ranking
from ragbench.index import neighbours

VERSION = 1
VECTORS = "vectors.npy"
_INDEX = "index.faiss"
# Candidates of compressed vectors, times the depth, that are scored again by the vectors themselves.
_RESCORED = 2


@dataclass(frozen=True)
class DenseSpec(Checked):
    """The settings of the dense artefact in addition to the model and the passages.

    `kind`: `flat` (exact), `hnsw`, `ivf_sq8`, or `auto`, which chooses by the number of chunks. `m`: links per node
    (2-64). `ef_construction`, `ef_search`: width of the beam while building and searching a graph (1-4096). `lists`:
    cells of `ivf_sq8` (at least 1; 4 sqrt(n) when None). `probes`: cells that a search reads (at least 1; when None a
    tenth of them, but at least 256).
    """

    # flat (exact), hnsw, ivf_sq8, or auto: by the number of chunks
    kind: Literal["flat", "hnsw", "ivf_sq8", "auto"] = "flat"
    m: Annotated[int, Interval(ge=2, le=64)] = 32
    ef_construction: Annotated[int, Interval(ge=1, le=4096)] = 200
    ef_search: Annotated[int, Interval(ge=1, le=4096)] = 128
    lists: Count | None = None  # cells of ivf_sq8; 4 sqrt(chunks) when null
    probes: Count | None = None  # of them that a search looks into; a tenth, at least 256, when null

    def with_kind_for(self, n_vectors: int) -> DenseSpec:
        """The same settings with `auto` replaced by the kind for a number of vectors."""
        return replace(self, kind=neighbours.kind_for(n_vectors)) if self.kind == "auto" else self


def build_dense(folder: Path, spec: DenseSpec, vectors: NDArray[np.float32]) -> None:
    """Write the vectors, float32 of shape (n, dim) with unit rows, and the searchable index over them."""
    np.save(folder / VECTORS, vectors, allow_pickle=False)
    build_neighbours(folder, spec)


def build_neighbours(folder: Path, spec: DenseSpec) -> None:
    """Write the searchable index over the vectors that are already in `folder`."""
    vectors = np.load(folder / VECTORS, mmap_mode="r", allow_pickle=False)
    kind = spec.with_kind_for(len(vectors)).kind
    if kind == "hnsw":
        neighbours.build_hnsw(folder / _INDEX, vectors, spec.m, spec.ef_construction)
    elif kind == "ivf_sq8" and len(vectors):
        neighbours.build_ivf(folder / _INDEX, vectors, spec.lists)


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
            return neighbours.open_structure(self._folder / _INDEX)
        if not neighbours.has_library():
            return neighbours.Compared(self.vectors)
        index = neighbours.library().IndexFlatIP(self.vectors.shape[1])
        index.add(np.ascontiguousarray(self.vectors))
        return index

    def search(
        self, queries: NDArray[np.float32], depth: int, allowed: NDArray[np.bool_] | None = None
    ) -> list[Ranking]:
        """The best `depth` chunks of every query, float32 (n, dim); `allowed` (n_chunks,) restricts the search."""
        if not len(self) or not len(queries):
            return [Ranking.empty() for _ in queries]
        if queries.shape[1:] != self.vectors.shape[1:]:
            given, stored = queries.shape[1], self.vectors.shape[1]
            raise ModelError(f"the encoder gives vectors of length {given} for queries and {stored} for passages")
        parameters = self._parameters(allowed)
        if self.spec.kind == "ivf_sq8":
            _, candidates = self._index.search(queries, min(_RESCORED * depth, len(self)), params=parameters)
            return [self._rescored(query, candidates[row], depth) for row, query in enumerate(queries)]
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
        """Search deeper while a tie may cross the cut-off, then order ties by chunk number."""
        while wanted < len(self) and len(scores) > depth and scores[-1] == scores[depth - 1] and chunks[-1] >= 0:
            wanted = min(2 * wanted, len(self))
            deeper, numbers = self._index.search(query[None, :], wanted, params=parameters)
            scores, chunks = deeper[0], numbers[0]
        found = chunks >= 0
        return Ranking.of(chunks[found], scores[found], depth)

    def _rescored(self, query: NDArray[np.float32], candidates: NDArray[np.int64], depth: int) -> Ranking:
        """Candidates of the compressed vectors, scored and ordered by the full vectors."""
        chunks = np.sort(candidates[candidates >= 0])
        return Ranking.of(chunks, self.vectors[chunks] @ query, depth)

    def _parameters(self, allowed: NDArray[np.bool_] | None) -> Any:
        if isinstance(self._index, neighbours.Compared):
            return allowed
        faiss, selector = neighbours.library(), None
        if allowed is not None:
            selector = faiss.IDSelectorBatch(np.flatnonzero(allowed[: len(self)]).astype(np.int64))
        if self.spec.kind == "hnsw":
            return faiss.SearchParametersHNSW(sel=selector, efSearch=self.spec.ef_search)
        if self.spec.kind == "ivf_sq8":
            probes = self.spec.probes or neighbours.probes_for(self._index.nlist)
            return faiss.SearchParametersIVF(sel=selector, nprobe=probes)
        return None if selector is None else faiss.SearchParameters(sel=selector)

    def similarities(self, chunks: Sequence[int] | NDArray[np.int32]) -> NDArray[np.float32]:
        """Cosine similarity of chunks to each other, float32 (n, n)."""
        rows = np.asarray(self.vectors[np.asarray(chunks)], dtype=np.float32)
        return rows @ rows.T
