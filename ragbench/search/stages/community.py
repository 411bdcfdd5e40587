"""Community: boost documents that are linked with the best ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ragbench.base.bounds import Checked, Count, Factor
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.stage import Fact, fused

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class BoostCommunity(Checked):
    """Multiply by `factor` (at least 1) the scores in the communities of the best `seeds` (at least 1) documents.

    Seed 001, "Community Detection": Louvain communities of the link graph (Blondel et al., 2008). It works on fused
    scores, because before fusion only ranks count and a boost would change nothing in most lists. The best documents
    are boosted with their communities, else they would fall behind; not with `include_seeds` false, as in the seed.
    A document without links is in no community and boosts no other.
    """

    factor: Factor = 1.1
    seeds: Count = 3
    include_seeds: bool = True  # the best documents are boosted, too; false: only others, as in seed 001

    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "graph"})
    requires: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({Fact.COMMUNITY})
    forbids: ClassVar[Mapping[str, str]] = {
        Fact.CALIBRATED: "a confidence times 1.1 may exceed 1: boost before calibration",
        Fact.COMMUNITY: "communities have been counted already",
        Fact.PARENTS: "it boosts chunks",
    }

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Boost every state's fused ranking."""
        return [replace(state, fused=self._boosted(fused(state), index)) for state in states]

    def _boosted(self, ranking: Ranking, index: Index) -> Ranking:
        documents = index.chunks.document[ranking.chunks]
        communities = index.graph.community[documents]
        best = list(dict.fromkeys(documents.tolist()))[: self.seeds]
        favoured = np.unique(index.graph.community[best]) if best else np.empty(0, dtype=np.int32)
        member = np.isin(communities, favoured[favoured >= 0])
        if not self.include_seeds:
            member &= ~np.isin(documents, best)
        return Ranking.of(ranking.chunks, np.where(member, ranking.scores * self.factor, ranking.scores))

    def describe(self) -> str:
        return f"boost the best documents' communities x{self.factor:g}"
