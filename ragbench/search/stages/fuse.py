"""Fuse the retrievers' rankings: by reciprocal rank, normalised scores or a method of ranx; weights by separation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ragbench.base import registry
from ragbench.base.options import Constraint, Positive, Share, Weight, option
from ragbench.search.stages.agreement import FOLLOWERS
from ragbench.search.stages.stage import Index, QueryState, Ranking, Stage, StateProperty, StateStage

Scores = NDArray[np.float64]


def _min_max(scores: Scores, least: float) -> Scores:
    """From 0 for the lowest to 1 for the best; equal scores are 1."""
    return _between(scores, float(scores.min()), float(scores.max()))


def _theoretical(scores: Scores, least: float) -> Scores:
    """From 0 for the least possible score to 1 for the best; Bruch, Gai and Ingber, TOIS 2023 (TM2C2)."""
    return _between(scores, min(least, float(scores.min())), float(scores.max()))


def _z(scores: Scores, least: float) -> Scores:
    """Standard deviations above the mean; equal scores are 0."""
    return np.asarray((scores - scores.mean()) / (_spread(scores) or 1.0))


def _three_sigma(scores: Scores, least: float) -> Scores:
    """From 0 at three standard deviations below the mean to 1 at three above: distribution-based score fusion."""
    return _z(scores, least) / 6 + 0.5


_NORMS: Mapping[str, Callable[[Scores, float], Scores]] = MappingProxyType(
    {"min_max": _min_max, "theoretical": _theoretical, "z": _z, "three_sigma": _three_sigma}
)


def _between(scores: Scores, low: float, high: float) -> Scores:
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)


def _spread(scores: Scores) -> float:
    """The standard deviation; exactly 0 for equal scores, where rounding could leave a little."""
    return float(scores.std()) if scores.max() > scores.min() else 0.0


_METHODS = {"rrf": "reciprocal rank", "convex": "weighted scores", "dbsf": "scores within three sigma of their mean"}
_RANX = "ranx:"
_Method = Annotated[
    str,
    Constraint(
        lambda method: method in _METHODS or method.startswith(_RANX),
        f"must be one of {', '.join(_METHODS)} or {_RANX}NAME, such as {_RANX}mnz",
    ),
]


@option("class=Fuse")
@dataclass(frozen=True)
class Fuse(Stage):
    """One ranking of all chunks that any source found.

    `method`:
    `rrf`, reciprocal rank fusion: score(d) = sum over sources of weight / (k + rank), rank from 1; Cormack, Clarke and
    Buettcher, SIGIR 2009; weights as in seed 001. `k` is at least 0.
    `convex`, a convex combination: sum of weight * norm(score) / sum of weights; Bruch, Gai and Ingber, TOIS 2023.
    `norm` is one of `ragbench.search.stages.fuse`; `least` by source is the least score it can give (0 when absent),
    which `theoretical` counts from. A chunk that a source did not return has the value of the source's last hit.
    `dbsf`, distribution-based score fusion: `convex` with every source by `three_sigma`.
    `ranx:NAME`, a method of ranx, with `norm` and `params` as in `ranx.fuse` (`ragbench.extras.fit.ranx_fusion`).

    `weights` by source (default 1.0, at least 0) are multiplied by those of the state; 0 leaves a source out.
    The chunks of a document in a ranking of documents share its rank. Ties go to the lower chunk number.
    """

    # rrf: reciprocal ranks; convex or dbsf: normalised scores; ranx:NAME: a method of ranx, such as ranx:mnz
    method: _Method = "rrf"
    k: Weight = 60.0  # constant of reciprocal rank fusion; Cormack et al. 2009
    weights: Mapping[str, Weight] = field(default_factory=dict)  # weights of retrievers, by name
    # how convex normalises scores: min_max, theoretical, z or three_sigma; with a method of ranx: min_max,
    # min_max_inverted, max, sum, zmuv, rank, borda or none
    norm: str = "min_max"
    params: Mapping[str, float] = field(default_factory=dict)  # parameters of a method of ranx: gamma, phi or sigma
    # minimum possible score of a retriever (default 0), for the norm theoretical
    least: Mapping[str, float] = field(default_factory=lambda: {"dense": -1.0})

    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "the rankings have been fused already"}

    def __post_init__(self) -> None:
        """Check the fields, and that norm and parameters belong to the method."""
        super().__post_init__()
        if self.method.startswith(_RANX):
            ranx_fusion = registry.required("hook", "ranx_fusion", f"fuse.method={self.method}")
            if (problem := ranx_fusion.problem(self.method, self.norm, self.params)) is not None:
                raise self.refused(*problem)
        elif self.norm not in _NORMS:
            raise self.refused("norm", f"must be one of {', '.join(_NORMS)}, got {self.norm}")
        elif self.params:
            raise self.refused("params", f"must be empty for {self.method}: they belong to methods of ranx")

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Set the fused ranking of every state."""
        if self.method.startswith(_RANX):
            return [replace(state, fused=ranking) for state, ranking in zip(states, self._by_ranx(states), strict=True)]
        return [replace(state, fused=self.fuse(state, index), unanimous=self.unanimous(state)) for state in states]

    def unanimous(self, state: QueryState) -> float:
        """The score of a hit that every source with hits and a vote ranks first; 0 for methods that fuse scores."""
        if self.method != "rrf":
            return 0.0
        voted = (source for source, ranking in state.rankings.items() if len(ranking) and source not in FOLLOWERS)
        return sum(self.weight(state, source) for source in voted) / (self.k + 1)

    def weight(self, state: QueryState, source: str) -> float:
        """The weight of a source for a query: the configured one times the state's factor."""
        return self.weights.get(source, 1.0) * state.weights.get(source, 1.0)

    def fuse(self, state: QueryState, index: Index) -> Ranking:
        """The fused ranking of one state."""
        if self.method.startswith(_RANX):
            return self._by_ranx([state])[0]
        weights = self._weights_above_zero(state)
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
                scores += weight / total * self._normalised(state.rankings[source], source, chunks)
        return Ranking.of(chunks, scores)

    def _weights_above_zero(self, state: QueryState) -> dict[str, float]:
        """The weight of each source with hits, by name, in alphabetical order."""
        weights = {
            source: self.weight(state, source) for source, ranking in sorted(state.rankings.items()) if len(ranking)
        }
        return {source: weight for source, weight in weights.items() if weight > 0}

    def _by_ranx(self, states: Sequence[QueryState]) -> list[Ranking]:
        """The fused ranking of each state by a method of ranx."""
        weights = [self._weights_above_zero(state) for state in states]
        rankings = [
            {source: state.rankings[source] for source in by_source}
            for state, by_source in zip(states, weights, strict=True)
        ]
        fused: list[Ranking] = registry.find("hook", "ranx_fusion").fuse(
            rankings, weights, self.method, self.norm, self.k, self.params
        )
        return fused

    def _normalised(self, ranking: Ranking, source: str, chunks: NDArray[np.int32]) -> NDArray[np.float64]:
        """The value of a source for each of `chunks`, which ascend and include all of its hits, shape (n,)."""
        norm = _NORMS["three_sigma" if self.method == "dbsf" else self.norm]
        values = norm(ranking.scores.astype(np.float64), self.least.get(source, 0.0))
        filled = np.full(len(chunks), values[-1])
        filled[np.searchsorted(chunks, ranking.chunks)] = values
        return filled

    def describe(self) -> str:
        weights = ", ".join(f"{source} x{weight:g}" for source, weight in sorted(self.weights.items()) if weight != 1.0)
        how = f"k {self.k:g}" if self.method in ("rrf", "ranx:rrf") else "" if self.method == "dbsf" else self.norm
        settings = ", ".join(filter(None, (how, weights)))
        return f"fuse by {_METHODS.get(self.method, self.method)}{f' ({settings})' if settings else ''}"


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


@option(
    "dynamic_weights",
    "Weight retrievers by how far their best results stand out (source 001).",
    weights="${fuse.weights}",
)
@dataclass(frozen=True)
class WeighByDecisiveness(StateStage):
    """Multiply the weights of `sources` by max(min_factor, decisiveness / threshold), at most 1; keep their sum.

    Seed 001, "Score-Aware Fusion", with `measure` `variance` as there: the variance of a source's scores instead of
    decisiveness, at a `threshold` of 0.1. Variances cannot be compared with one threshold, because cosines run from 0.5
    to 0.9 and BM25 scores from 0 to 30; scaled to [0, 1] first, a list with one outstanding hit has the smallest
    variance. `threshold` is above 0, `min_factor` between 0 and 1. `weights` are the
    weights of fusion by source (1 when absent), which the factors multiply.
    """

    threshold: Positive = 0.5  # score separation from which a retriever has its full weight
    min_factor: Share = 0.5  # minimum factor of a weight
    measure: Literal["decisiveness", "variance"] = "decisiveness"  # variance: as in source 001, with a threshold of 0.1
    sources: tuple[str, ...] = ("dense", "lexical")  # retrievers whose weights change
    weights: Mapping[str, Weight] = field(default_factory=dict)  # weights of fusion, which the factors multiply

    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "the sources' weights would change too late"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Weigh the sources of a query."""
        present = [source for source in self.sources if source in state.rankings]
        measure = _decisiveness if self.measure == "decisiveness" else _variance
        factors = {
            source: min(1.0, max(self.min_factor, measure(state.rankings[source]) / self.threshold))
            for source in present
        }
        base = {source: self.weights.get(source, 1.0) * state.weights.get(source, 1.0) for source in present}
        total = sum(base[source] * factor for source, factor in factors.items())
        if total == 0:
            return state
        scale = sum(base.values()) / total
        for source, factor in factors.items():
            state = state.with_weight(source, factor * scale)
        return state

    def describe(self) -> str:
        return "weigh sources by " + ("how decided they are" if self.measure == "decisiveness" else "variance")


def _variance(ranking: Ranking) -> float:
    """The variance of the scores as they are, 0 for none."""
    return float(ranking.scores.astype(np.float64).var()) if len(ranking) else 0.0


def _decisiveness(ranking: Ranking) -> float:
    """How much of the fall from the best score to the worst lies within the first tenth of the hits, 0 to 1.

    0 when all scores are equal, 1 when all but the best are equal, about 0.1 when they fall evenly. It does not change
    when all scores are multiplied by a number or a number is added to all. 0 for fewer than two hits.
    """
    if len(ranking) < 2:
        return 0.0
    scores = ranking.scores.astype(np.float64)
    fall = scores[0] - scores[-1]
    return float((scores[0] - scores[max(1, len(scores) // 10)]) / fall) if fall > 0 else 0.0
