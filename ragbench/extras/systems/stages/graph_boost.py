"""Graph boost of lexical search v3: boost documents that are connected with other hits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ragbench.base.bounds import Count, Factor, Weight
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.stage import StateProperty, StateStage, current_ranking, with_current_ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class BoostConnected(StateStage):
    """Multiply scores by 1 + `strength` * ln(1 + connections), at most `max_factor` (at least 1).

    Seed 002, "Post-ranking adjustments". It reads the first `max_candidates` (at least 1) documents. The connections of
    one of them are counts of the others, each times its weight (at least 0): those that link to it; those that some
    document cites together with it; those that share a tag with it. The seed names the three kinds; the weights are
    those of the program it describes. It acts on the fused ranking, or before fusion on that of `source`.
    """

    source: str = "lexical"  # result list that it changes before fusion
    max_candidates: Count = 20
    strength: Weight = 0.1
    max_factor: Factor = 1.15
    backlink: Weight = 1.0
    cocitation: Weight = 0.5
    shared_tag: Weight = 0.3

    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "graph"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.GRAPH_BOOST})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.CALIBRATED: "a confidence times 1.15 may exceed 1: boost before it",
        StateProperty.GRAPH_BOOST: "connections have been boosted already",
        StateProperty.PARENTS: "it boosts chunks",
    }

    def factor(self, connections: float) -> float:
        """The factor for a connection score."""
        return min(self.max_factor, 1 + self.strength * math.log(1 + connections))

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Boost the ranking."""
        ranking = current_ranking(state, self.source)
        factors = {document: self.factor(score) for document, score in self.connections(ranking, index).items()}
        factor_of_hit = [factors.get(document, 1.0) for document in index.chunks.document[ranking.chunks].tolist()]
        return with_current_ranking(state, self.source, Ranking.of(ranking.chunks, ranking.scores * factor_of_hit))

    def connections(self, ranking: Ranking, index: Index) -> dict[int, float]:
        """The connection score of each of the first documents."""
        documents = list(dict.fromkeys(index.chunks.document[ranking.chunks].tolist()))[: self.max_candidates]
        citing = {document: index.graph.linking_to(document) for document in documents}
        tags = {document: set(index.chunks.document_value("tags", document)) for document in documents}
        scores = {}
        for one in documents:
            others = [second for second in documents if second != one]
            scores[one] = (
                self.backlink * sum(second in citing[one] for second in others)
                + self.cocitation * sum(not citing[one].isdisjoint(citing[second]) for second in others)
                + self.shared_tag * sum(not tags[one].isdisjoint(tags[second]) for second in others)
            )
        return scores

    def explain(self, state: QueryState, index: Index, chunk: int) -> dict[str, Any]:
        """`graph_boost` of a chunk that was boosted."""
        ranking = current_ranking(state, self.source)
        score = self.connections(ranking, index).get(int(index.chunks.document[chunk]), 0.0)
        if chunk not in ranking.chunks:
            return {}
        return {"graph_boost": {"connections": score, "boost_factor": self.factor(score)}} if score else {}

    def describe(self) -> str:
        return f"boost connected documents (at most x{self.max_factor:g})"
