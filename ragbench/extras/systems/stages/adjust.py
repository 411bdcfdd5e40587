"""Adjustments after ranking of lexical search v3: boosts of folders and links, scaled scores, diverse documents."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.options import Count, Factor, Share, Weight, option
from ragbench.extras.systems.state import SystemProperty
from ragbench.search.stages.stage import Index, QueryState, Ranking, Stage, StateProperty, StateStage


@option("folder_boost", "Boost folders that contain many of the results (source 002).")
@dataclass(frozen=True)
class BoostFolder(Stage):
    """Multiply the scores of a folder by 1 + log2(count + 1) * sqrt(ratio), at most `max_factor` (at least 1).

    Seed 002, "Post-ranking adjustments": `count` documents of the folder are among the hits, `ratio` is their share of
    all documents in it. At least `min_docs` and `min_ratio` (0 to 1) are needed. The cap of the seed is lower than any
    value of the formula (2.0 for 2 of 5 documents), so every folder that qualifies gets 1.15. It acts on the fused
    ranking, or before fusion on that of `source`. Documents outside any folder get no boost.
    """

    source: str = "lexical"  # result list that it changes before fusion
    min_docs: Count = 2  # minimum documents of the folder among the hits
    min_ratio: Share = 0.4  # minimum share of the documents in the folder
    max_factor: Factor = 1.15  # maximum factor of a score

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({SystemProperty.FOLDER_BOOST})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.CALIBRATED: "a confidence times 1.15 may exceed 1: boost before it",
        SystemProperty.FOLDER_BOOST: "folders have been boosted already",
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
        ranking = _current_ranking(state, self.source)
        folders = [_folder(index.chunks.docno(chunk)) for chunk in ranking.chunks.tolist()]
        counts = _counts(ranking, index)
        factors = [self.factor(counts[f], totals[f]) if f else 1.0 for f in folders]
        return _with_current_ranking(state, self.source, Ranking.of(ranking.chunks, ranking.scores * factors))

    def explain(self, state: QueryState, index: Index, chunk: int) -> dict[str, Any]:
        """`folder_boost` of a chunk that was boosted."""
        folder = _folder(index.chunks.docno(chunk))
        total = Counter(map(_folder, index.chunks.docnos))[folder]
        count = _counts(_current_ranking(state, self.source), index)[folder]
        factor = self.factor(count, total)
        if not folder or factor == 1.0 or chunk not in _current_ranking(state, self.source).chunks:
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


@option(
    "graph_boost", "Boost documents that are connected with other results by links, co-citations or tags (source 002)."
)
@dataclass(frozen=True)
class BoostConnected(StateStage):
    """Multiply scores by 1 + `strength` * ln(1 + connections), at most `max_factor` (at least 1).

    Seed 002, "Post-ranking adjustments". It reads the first `max_candidates` (at least 1) documents. The connections of
    one of them are counts of the others, each times its weight (at least 0): those that link to it; those that some
    document cites together with it; those that share a tag with it. The seed names the three kinds; the weights are
    those of the program it describes. It acts on the fused ranking, or before fusion on that of `source`.
    """

    source: str = "lexical"  # result list that it changes before fusion
    max_candidates: Count = 20  # number of documents that are compared
    strength: Weight = 0.1  # factor of the logarithm of connections
    max_factor: Factor = 1.15  # maximum factor of a score
    backlink: Weight = 1.0  # weight of a link to the document
    cocitation: Weight = 0.5  # weight of being cited together
    shared_tag: Weight = 0.3  # weight of a shared tag

    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "graph"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({SystemProperty.GRAPH_BOOST})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.CALIBRATED: "a confidence times 1.15 may exceed 1: boost before it",
        SystemProperty.GRAPH_BOOST: "connections have been boosted already",
        StateProperty.PARENTS: "it boosts chunks",
    }

    def factor(self, connections: float) -> float:
        """The factor for a connection score."""
        return min(self.max_factor, 1 + self.strength * math.log(1 + connections))

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Boost the ranking."""
        ranking = _current_ranking(state, self.source)
        factors = {document: self.factor(score) for document, score in self.connections(ranking, index).items()}
        factor_of_hit = [factors.get(document, 1.0) for document in index.chunks.document[ranking.chunks].tolist()]
        return _with_current_ranking(state, self.source, Ranking.of(ranking.chunks, ranking.scores * factor_of_hit))

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
        ranking = _current_ranking(state, self.source)
        score = self.connections(ranking, index).get(int(index.chunks.document[chunk]), 0.0)
        if chunk not in ranking.chunks:
            return {}
        return {"graph_boost": {"connections": score, "boost_factor": self.factor(score)}} if score else {}

    def describe(self) -> str:
        return f"boost connected documents (at most x{self.max_factor:g})"


@option("normalise", "Min-max normalisation of scores, clipped (source 002).")
@dataclass(frozen=True)
class NormaliseScores(StateStage):
    """Map scores to (score - lowest) / (highest - lowest), clipped to [`low`, `high`], both between 0 and 1.

    Seed 002, "Post-ranking adjustments". Equal scores, or a single one, become `high`. The order stays, also when
    clipping makes scores equal. It acts on the fused ranking, or before fusion on that of `source`.
    """

    source: str = "lexical"  # result list that it changes before fusion
    low: Share = 0.02  # minimum score
    high: Share = 0.98  # maximum score

    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    provides: ClassVar[frozenset[str]] = frozenset({SystemProperty.NORMALISED})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.CALIBRATED: "a confidence between 0 and 1 is no longer one when it is stretched",
        SystemProperty.NORMALISED: "scores have been normalised already",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise self.refused("high", f"must be above low {self.low:g}, got {self.high:g}")

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Normalise the ranking."""
        return _with_current_ranking(state, self.source, self.normalise(_current_ranking(state, self.source)))

    def normalise(self, ranking: Ranking) -> Ranking:
        """The same hits with scores between `low` and `high`."""
        if not len(ranking):
            return ranking
        scores = ranking.scores.astype(np.float64)
        spread = scores[0] - scores[-1]
        scaled = (scores - scores[-1]) / spread if spread > 0 else np.ones(len(scores))
        return Ranking.ordered(ranking.chunks, np.clip(scaled, self.low, self.high))

    def describe(self) -> str:
        return f"scale scores to {self.low:g} - {self.high:g}"


@option("diverse", "Show each document once before any document twice (source 002).")
@dataclass(frozen=True)
class KeepDiverse(StateStage):
    """Keep `top_k` (at least 1) hits: the best of every document, then the best of the others.

    Seed 002, `selectDiverseTopK`; the seed gives only its name. The order of the kept hits does not change. It acts on
    the fused ranking, in which guaranteed hits stay and do not count, or before fusion on that of `source`.
    """

    source: str = "lexical"  # result list that it changes before fusion
    top_k: Count = 30  # number of hits to keep

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.PARENTS: "it chooses among chunks, not their parents"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Shorten the ranking."""
        ranking = _current_ranking(state, self.source)
        documents = index.chunks.document[ranking.chunks]
        keep = np.zeros(len(ranking), dtype=np.bool_)
        if state.fused is not None and state.guaranteed:
            keep = np.isin(ranking.chunks, list(state.guaranteed))
        keep[~keep] = self.select(documents[~keep])
        return _with_current_ranking(state, self.source, ranking.keep(keep))

    def select(self, documents: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which hits stay, shape (n,), given the document of each, best first."""
        first = np.zeros(len(documents), dtype=np.bool_)
        first[np.unique(documents, return_index=True)[1]] = True
        order = np.concatenate([np.flatnonzero(first), np.flatnonzero(~first)])
        keep = np.zeros(len(documents), dtype=np.bool_)
        keep[order[: self.top_k]] = True
        return keep

    def returning(self, n: int) -> KeepDiverse:
        """The stage for a search that returns `n` hits."""
        return replace(self, top_k=n)

    def last_choice(self, n: int) -> KeepDiverse | None:
        """The stage that chooses `n` of the hits that this one keeps; None where it keeps no more."""
        return KeepDiverse(top_k=n) if self.top_k > n else None

    def describe(self) -> str:
        return f"keep {self.top_k} of many documents"


def _current_ranking(state: QueryState, source: str) -> Ranking:
    """The fused ranking, or before fusion that of one source; empty when there is none."""
    return state.rankings.get(source, Ranking.empty()) if state.fused is None else state.fused


def _with_current_ranking(state: QueryState, source: str, ranking: Ranking) -> QueryState:
    """The state with the ranking that `_current_ranking` reads replaced."""
    return state.with_ranking(source, ranking) if state.fused is None else replace(state, fused=ranking)
