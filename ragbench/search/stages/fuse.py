"""Fuse the sources' rankings: by reciprocal rank, or by normalised scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Checked, Weight
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.norms import NORMS, Norm, Scores
from ragbench.search.stages.stage import Fact, Retriever
from ragbench.search.stages.votes import FOLLOWERS

if TYPE_CHECKING:
    from ragbench.index.index import Index

_METHODS = {"rrf": "reciprocal rank", "convex": "weighted scores", "dbsf": "scores within three sigma of their mean"}


@dataclass(frozen=True)
class Fuse(Checked):
    """One ranking of all chunks that any source found.

    `method`:
    `rrf`, reciprocal rank fusion: score(d) = sum over sources of weight / (k + rank), rank from 1; Cormack, Clarke and
    Buettcher, SIGIR 2009; weights as in seed 001. `k` is at least 0.
    `convex`, a convex combination: sum of weight * norm(score) / sum of weights; Bruch, Gai and Ingber, TOIS 2023.
    `norm` is one of `ragbench.search.stages.norms`, `norms` another one by source; `least` by source is the least score
    it can give (0 when absent), which `theoretical` counts from.
    `dbsf`, distribution-based score fusion: `convex` with every source by `three_sigma`.

    `missing` is the value of a chunk in a source that did not return it, where scores are fused: `lowest`, that of the
    source's last hit; `nothing`, 0; or `exact`, its real score, computed by those `sources` that can, else `lowest`.

    `weights` by source (default 1.0, at least 0) are multiplied by those of the state; 0 leaves a source out.
    The chunks of a document in a ranking of documents share its rank. Ties go to the lower chunk number.
    """

    method: Literal["rrf", "convex", "dbsf"] = "rrf"  # reciprocal ranks; convex or dbsf: normalised scores
    k: Weight = 60.0  # constant of reciprocal rank fusion; Cormack et al. 2009
    weights: Mapping[str, Weight] = field(default_factory=dict)
    norm: Norm = "min_max"  # how convex normalises scores: min_max, theoretical, z or three_sigma
    norms: Mapping[str, Norm] = field(default_factory=dict)  # norms of single retrievers
    # minimum possible score of a retriever (default 0), for the norm theoretical
    least: Mapping[str, float] = field(default_factory=lambda: {"dense": -1.0})
    # score of a chunk that a retriever did not return: lowest, nothing or exact
    missing: Literal["lowest", "nothing", "exact"] = "lowest"
    sources: tuple[Retriever, ...] = field(default=(), metadata={"made by": "the pipeline"})

    requires: ClassVar[frozenset[str]] = frozenset({Fact.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    forbids: ClassVar[Mapping[str, str]] = {Fact.FUSED: "the rankings have been fused already"}

    @property
    def needs(self) -> frozenset[str]:
        """The parts that sources read when they score chunks they did not return."""
        return frozenset().union(*(source.needs for source in self.sources))

    @property
    def asks(self) -> bool:
        """Whether sources are asked for the scores of chunks they did not return."""
        return self.method != "rrf" and self.missing == "exact"

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Set the fused ranking of every state."""
        return [replace(state, fused=self.fuse(state, index), unanimous=self.unanimous(state)) for state in states]

    def among(self, sources: Sequence[Retriever]) -> Fuse:
        """This stage in a pipeline with these sources."""
        return replace(self, sources=tuple(sources)) if self.asks else self

    def unanimous(self, state: QueryState) -> float:
        """The score of a hit that every source with hits and a vote ranks first; 0 for methods that fuse scores."""
        if self.method != "rrf":
            return 0.0
        voted = (source for source, found in state.rankings.items() if len(found) and source not in FOLLOWERS)
        return sum(self.weight(state, source) for source in voted) / (self.k + 1)

    def weight(self, state: QueryState, source: str) -> float:
        """The weight of a source for a query: the configured one times the state's factor."""
        return self.weights.get(source, 1.0) * state.weights.get(source, 1.0)

    def fuse(self, state: QueryState, index: Index) -> Ranking:
        """The fused ranking of one state."""
        weights = {source: self.weight(state, source) for source, found in sorted(state.rankings.items()) if len(found)}
        weights = {source: weight for source, weight in weights.items() if weight > 0}
        if not weights:
            return Ranking.empty()
        chunks = _distinct(np.concatenate([state.rankings[source].chunks for source in weights]))
        scores = np.zeros(len(chunks))
        total = sum(weights.values())
        for source, weight in weights.items():
            if self.method == "rrf":
                ranking = state.rankings[source]
                ranks = _ranks_of(ranking, index)
                scores[np.searchsorted(chunks, ranking.chunks)] += weight / (self.k + ranks)
            else:
                scores += weight / total * self._normalised(state, source, chunks, index)
        return Ranking.of(chunks, scores)

    def _normalised(
        self, state: QueryState, source: str, chunks: NDArray[np.int32], index: Index
    ) -> NDArray[np.float64]:
        """The value of a source for each of `chunks`, which ascend and include all of its hits, shape (n,)."""
        ranking = state.rankings[source]
        norm = NORMS["three_sigma" if self.method == "dbsf" else self.norms.get(source, self.norm)]
        scores, least = ranking.scores.astype(np.float64), self.least.get(source, 0.0)
        values = norm(scores, least)
        filled = np.full(len(chunks), 0.0 if self.missing == "nothing" else values[-1])
        found = np.searchsorted(chunks, ranking.chunks)
        filled[found] = values
        retriever = next((each for each in self.sources if each.source == source), None)
        if retriever is not None and len(ranking) < len(chunks):
            absent = np.ones(len(chunks), dtype=np.bool_)
            absent[found] = False
            exact = retriever.scores(state, chunks[absent], index)
            if exact is not None:
                filled[absent] = _on_scale_of(norm, scores, least, exact)
        return filled

    def describe(self) -> str:
        weights = ", ".join(f"{source} x{weight:g}" for source, weight in sorted(self.weights.items()) if weight != 1.0)
        how = f"k {self.k:g}" if self.method == "rrf" else self.norm if self.method == "convex" else ""
        settings = ", ".join(filter(None, (how, weights)))
        return f"fuse by {_METHODS[self.method]}{f' ({settings})' if settings else ''}"


def _distinct(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """Each number once, ascending: `np.unique` takes seven times as long for a thousand."""
    ordered = np.sort(numbers)
    return np.asarray(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])])


def _ranks_of(ranking: Ranking, index: Index) -> NDArray[np.int64]:
    """The rank of every hit, from 1; in a ranking of documents the chunks of one document share it."""
    if not ranking.of_documents:
        return np.arange(1, len(ranking) + 1)
    documents = index.chunks.document[ranking.chunks]
    return np.cumsum(np.concatenate([[True], documents[1:] != documents[:-1]]))


def _on_scale_of(norm: Callable[[Scores, float], Scores], scores: Scores, least: float, others: Scores) -> Scores:
    """Other scores on the scale that a norm gives to `scores`; this is exact, because every norm is linear."""
    high, low = float(scores[0]), float(scores[-1])
    if high == low:
        return np.full(len(others), norm(scores, least)[-1])
    values = norm(scores, least)
    slope = float(values[0] - values[-1]) / (high - low)
    return float(values[-1]) + slope * (others - low)
