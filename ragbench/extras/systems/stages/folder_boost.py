"""Folder boost of lexical search v3: boost folders many of whose documents were found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ragbench.base.bounds import Count, Factor, Share, Validated
from ragbench.base.types import QueryState, Ranking
from ragbench.search.stages.stage import StateProperty, current_ranking, with_current_ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class BoostFolder(Validated):
    """Multiply the scores of a folder by 1 + log2(count + 1) * sqrt(ratio), at most `max_factor` (at least 1).

    Seed 002, "Post-ranking adjustments": `count` documents of the folder are among the hits, `ratio` is their share of
    all documents in it. At least `min_docs` and `min_ratio` (0 to 1) are needed. The cap of the seed is lower than any
    value of the formula (2.0 for 2 of 5 documents), so every folder that qualifies gets 1.15. It acts on the fused
    ranking, or before fusion on that of `source`. Documents outside any folder get no boost.
    """

    source: str = "lexical"  # result list that it changes before fusion
    min_docs: Count = 2
    min_ratio: Share = 0.4
    max_factor: Factor = 1.15

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.FOLDER_BOOST})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.CALIBRATED: "a confidence times 1.15 may exceed 1: boost before it",
        StateProperty.FOLDER_BOOST: "folders have been boosted already",
        StateProperty.PARENTS: "it boosts chunks",
    }

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Boost the ranking of every state."""
        totals = Counter(map(_folder, index.chunks.docnos))
        return [self._boosted(state, index, totals) for state in states]

    def factor(self, count: int, total: int) -> float:
        """The factor of a folder of which `count` documents of `total` were found."""
        ratio = count / total
        if count < self.min_docs or ratio < self.min_ratio:
            return 1.0
        return min(self.max_factor, 1 + math.log2(count + 1) * math.sqrt(ratio))

    def _boosted(self, state: QueryState, index: Index, totals: Mapping[str, int]) -> QueryState:
        ranking = current_ranking(state, self.source)
        folders = [_folder(index.chunks.docno(chunk)) for chunk in ranking.chunks.tolist()]
        counts = _counts(ranking, index)
        factors = [self.factor(counts[f], totals[f]) if f else 1.0 for f in folders]
        return with_current_ranking(state, self.source, Ranking.of(ranking.chunks, ranking.scores * factors))

    def explain(self, state: QueryState, index: Index, chunk: int) -> dict[str, Any]:
        """`folder_boost` of a chunk that was boosted."""
        folder = _folder(index.chunks.docno(chunk))
        total = Counter(map(_folder, index.chunks.docnos))[folder]
        count = _counts(current_ranking(state, self.source), index)[folder]
        factor = self.factor(count, total)
        if not folder or factor == 1.0 or chunk not in current_ranking(state, self.source).chunks:
            return {}
        return {
            "folder_boost": {
                "folder": folder,
                "document_count": count,
                "total_docs_in_folder": total,
                "relevance_ratio": count / total,
                "boost_factor": factor,
            }
        }

    def describe(self) -> str:
        return f"boost folders (at most x{self.max_factor:g})"


def _folder(docno: str) -> str:
    return docno.rpartition("/")[0]


def _counts(ranking: Ranking, index: Index) -> Counter[str]:
    """How many documents of every folder are among the hits."""
    documents = sorted({int(document) for document in index.chunks.document[ranking.chunks]})
    return Counter(_folder(index.chunks.docnos[document]) for document in documents)
