"""Use links between documents: a retriever of neighbours, and a boost for the communities of the best hits."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from ragbench.base.options import Count, Factor, Share, option
from ragbench.search.stages.stage import Boost, Index, QueryState, Ranking, StateProperty, StateStage

_SOURCE = "graph"


@option("graph", "Follow links from the retrieved documents, as a separate retriever (source 001).")
@dataclass(frozen=True)
class FollowLinks(StateStage):
    """Add the neighbours of the documents found so far as a separate source, whose weight is multiplied by `factor`.

    Seed 001, "Graph Traversal": links are followed both ways for `hops` (1 to 3) from the best `seeds` (at least 1)
    documents of the other sources; `factor` (0 to 1) is 0.5 there. The score of a neighbour is factor^(hop - 1) / rank
    of its nearest seed. One chunk represents it, so that a page with many links cannot fill the fusion: the one that
    another source ranked best, else the one most similar to the seed's best chunk. `new_only`: only documents that no
    other source found, as the seed intends; else documents found anyway would count twice. `share` (0 to 1) is the
    greatest share of neighbours among all hits, rounded up.
    """

    factor: Share = 0.5  # factor of the weight, and of a score for each further link
    hops: Annotated[int, Interval(ge=1, le=3)] = 1  # number of links to follow
    seeds: Count = 10  # documents to start from
    new_only: bool = True  # only documents that no other retriever returned
    share: Share = 0.2  # maximum share of neighbours among all results

    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "dense", "graph"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "its ranking would come too late to be fused"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Add the ranking of source `graph`."""
        return state.with_ranking(_SOURCE, self._neighbours(state, index)).with_weight(_SOURCE, self.factor)

    def _neighbours(self, state: QueryState, index: Index) -> Ranking:
        best_chunk = _best_chunks(state, index)
        allowed = index.allowed(state.filters)
        reached = self._reached(list(best_chunk)[: self.seeds], index)
        in_ranking = best_chunk.keys() if self.new_only else set()
        order = sorted(reached.keys() - in_ranking, key=lambda node: (-reached[node][0], node))
        pairs = ((_representative(node, reached[node][1], best_chunk, index), reached[node][0]) for node in order)
        neighbours = ((chunk, score) for chunk, score in pairs if chunk >= 0 and (allowed is None or allowed[chunk]))
        nearest = list(itertools.islice(neighbours, self._most_neighbours(state)))
        return Ranking.of([chunk for chunk, _ in nearest], [score for _, score in nearest])

    def _reached(self, seeds: Sequence[int], index: Index) -> dict[int, tuple[float, int]]:
        """The score of every document that links lead to, and the seed that gives it."""
        reached: dict[int, tuple[float, int]] = {}
        for rank, seed in enumerate(seeds, start=1):
            frontier, seen = {seed}, {seed}
            for hop in range(self.hops):
                frontier = {n for node in frontier for n in index.graph.neighbours(node)} - seen
                seen |= frontier
                score = self.factor**hop / rank
                for node in frontier:
                    if score > reached.get(node, (0.0, 0))[0]:
                        reached[node] = (score, seed)
        return reached

    def _most_neighbours(self, state: QueryState) -> int:
        """The number of neighbours that is `share` of all hits, rounded up."""
        others = len({int(chunk) for ranking in state.rankings.values() for chunk in ranking.chunks})
        return math.ceil(self.share * others / (1 - self.share) - 1e-9) if self.share < 1 else sys.maxsize

    def describe(self) -> str:
        return f"follow links for {self.hops} hop{'s' if self.hops > 1 else ''}"


def _representative(node: int, seed: int, best_chunk: Mapping[int, int], index: Index) -> int:
    """The chunk that stands for a document, -1 for a document without chunks."""
    if node in best_chunk:
        return best_chunk[node]
    start, stop = index.chunks.chunks_of(node)
    if stop - start < 2:
        return start if stop > start else -1
    vectors = index.dense.vectors
    return start + int(np.argmax(vectors[start:stop] @ vectors[best_chunk[seed]]))


def _best_chunks(state: QueryState, index: Index) -> dict[int, int]:
    """The best chunk of every document found, documents by their best rank in any source, then by chunk number."""
    document = index.chunks.document
    ranked = sorted(
        (rank, chunk) for ranking in state.rankings.values() for rank, chunk in enumerate(ranking.chunks.tolist())
    )
    best: dict[int, int] = {}
    for _, chunk in ranked:
        best.setdefault(int(document[chunk]), chunk)
    return best


@option("community", "Boost documents in the link communities of the best documents (source 001).")
@dataclass(frozen=True)
class BoostCommunity(Boost):
    """Multiply by `factor` (at least 1) the scores in the communities of the best `seeds` (at least 1) documents.

    Seed 001, "Community Detection": Louvain communities of the link graph (Blondel et al., 2008). It works on fused
    scores, because before fusion only ranks count and a boost would change nothing in most lists. The best documents
    are boosted with their communities, else they would fall behind; not with `include_seeds` false, as in the seed.
    A document without links is in no community and boosts no other.
    """

    factor: Factor = 1.1  # factor of the scores
    seeds: Count = 3  # best documents whose communities are boosted
    include_seeds: bool = True  # also boost the best documents; false: only others, as in source 001

    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "graph"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.COMMUNITY})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.CALIBRATED: "a confidence times 1.1 may exceed 1: boost before calibration",
        StateProperty.COMMUNITY: "communities have been counted already",
        StateProperty.PARENTS: "it boosts chunks",
    }

    def factors(self, documents: NDArray[np.int32], index: Index) -> NDArray[np.float32]:
        """The factor for hits in the communities of the best documents, 1 for others."""
        communities = index.graph.community[documents]
        best = list(dict.fromkeys(documents.tolist()))[: self.seeds]
        favoured = np.unique(index.graph.community[best]) if best else np.empty(0, dtype=np.int32)
        member = np.isin(communities, favoured[favoured >= 0])
        if not self.include_seeds:
            member &= ~np.isin(documents, best)
        return np.where(member, np.float32(self.factor), np.float32(1))

    def describe(self) -> str:
        return f"boost the best documents' communities x{self.factor:g}"
