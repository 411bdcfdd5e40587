"""Less repetition among hits: equal texts, near-duplicates, many of one document (P8, P11, P12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from ragbench.base.options import Cosine, Count, Natural, Share, option
from ragbench.base.types import QueryClass
from ragbench.search.stages.stage import (
    Filter,
    Index,
    QueryState,
    Ranking,
    Reorder,
    StateProperty,
    first_of_similar,
    fused,
)


@option(
    "p8.content_hash",
    "Drop equal texts, then paraphrases; limit results per document (source 000 P8; near-duplicates are p12).",
)
@dataclass(frozen=True)
class DropEqualTexts(Filter):
    """Keep the first of the hits whose texts are equal, by the digests in the chunk table. Seed 000, P8 stage 1."""

    counted: ClassVar[str] = "after_content_dedup"
    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})

    def keep(self, state: QueryState, index: Index) -> NDArray[np.bool_]:
        """The first hit of each text."""
        ranking = fused(state)
        first = np.zeros(len(ranking), dtype=np.bool_)
        first[np.unique(index.chunks.content_hash[ranking.chunks], return_index=True)[1]] = True
        return first

    def describe(self) -> str:
        return "drop equal texts"


@option("p12", "Drop near-duplicates by trigram overlap (sources 000 P12, 001).")
@dataclass(frozen=True)
class DropNearCopies(Filter):
    """Drop a hit whose trigrams and those of a better hit have a Jaccard coefficient of `threshold` or more.

    `threshold` is above 0 and at most 1. `unit`: `character` takes trigrams of the lower-cased text without spaces
    (seed 000, P12), `word` those of its words (P8 stage 2). The trigrams come from the index; no text is read here.
    """

    threshold: Annotated[float, Interval(gt=0, le=1)] = 0.7  # minimum overlap of trigrams of a copy
    unit: Literal["character", "word"] = "character"  # or word (seed 000 P8, stage 2)

    counted: ClassVar[str] = "after_ngram_dedup"
    needs: ClassVar[frozenset[str]] = frozenset({"trigrams"})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.DIVERSE: "the cheap n-gram filter goes before the semantic one",
        StateProperty.SEMANTIC_DEDUP: "the cheap n-gram filter goes before the semantic one",
    }

    def keep(self, state: QueryState, index: Index) -> NDArray[np.bool_]:
        """The hits that overlap with no better one that stays."""
        overlap = index.trigrams.jaccard(fused(state).chunks, self.unit)
        return first_of_similar(overlap, self.threshold)

    def describe(self) -> str:
        return f"drop near-duplicates ({self.unit} trigrams, {self.threshold:g})"


@option("p8.semantic")
@dataclass(frozen=True)
class DropParaphrases(Filter):
    """Drop a hit whose vector has a cosine of `threshold` (-1 to 1) or more with that of a better hit.

    Seed 000, P8 stage 3. The vectors are those of the index: no passage is embedded at query time.
    """

    threshold: Cosine = 0.85  # minimum cosine of a paraphrase

    counted: ClassVar[str] = "after_dedup"
    needs: ClassVar[frozenset[str]] = frozenset({"dense"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.SEMANTIC_DEDUP})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.DIVERSE: "P11 replaces semantic deduplication: turn one off (p8.semantic=null or p11=off)"
    }

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Drop hits of the fused ranking and count the merged clusters."""
        left = super().apply(state, index)
        return replace(left, clusters_merged=state.clusters_merged + len(fused(state)) - len(fused(left)))

    def keep(self, state: QueryState, index: Index) -> NDArray[np.bool_]:
        """The hits that are similar to no better one that stays."""
        return first_of_similar(index.dense.similarities(fused(state).chunks), self.threshold)

    def describe(self) -> str:
        return f"drop paraphrases (cosine {self.threshold:g})"


@option("p11", "Order by maximal marginal relevance; replaces the semantic stage of p8 (sources 000 P11, 001).")
@dataclass(frozen=True)
class Diversify(Reorder):
    """Pick hits one by one, each time the one with the highest lambda * relevance - (1 - lambda) * similarity.

    Carbonell and Goldstein, SIGIR 1998; seed 000, P11. `lambda_` (0 to 1): 1 is relevance alone. The first `candidates`
    hits (at least 1) are picked from, the others follow in their order. Both values are between 0 and 1: similarity is
    the highest cosine with a picked hit, 0 if negative; relevance is the score, with `scale` `minmax` scaled over the
    candidates, with `score` unchanged, for scores that are confidences. The new score of a hit is lambda * relevance +
    (1 - lambda) * (1 - similarity): the same quantity moved to [0, 1], which never grows from pick to pick, so that
    order and scores agree. `by_class` gives another lambda to a class of P3 (query-dependent lambda, future work of
    seed 001).
    """

    replaces: ClassVar[tuple[str, ...]] = ("p8.semantic",)
    lambda_: Share = 0.7  # 1: relevance only
    candidates: Count = 50  # number of hits to choose from
    # minmax: fused scores normalised over the candidates; score: unchanged
    scale: Literal["minmax", "score"] = "minmax"
    # lambda for a query class of p3, such as {exploratory: 0.5}
    by_class: Mapping[QueryClass, Share] = field(default_factory=dict)

    needs: ClassVar[frozenset[str]] = frozenset({"dense"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.DIVERSE})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.SEMANTIC_DEDUP: "P11 replaces semantic deduplication: turn one off (p8.semantic=null or p11=off)",
        StateProperty.RERANKED: "its order would replace that of the re-ranker",
    }

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        """Pick the hits one by one."""
        ranking = fused(state)
        head = ranking.head(self.candidates)
        if len(head) == 0:
            return ranking
        similarity = np.clip(index.dense.similarities(head.chunks), 0.0, 1.0)
        weight = self.lambda_ if state.query_class is None else self.by_class.get(state.query_class, self.lambda_)
        order, scores = _marginal_order(self._relevance(head), similarity, weight)
        tail = np.minimum(ranking.scores[len(head) :], scores[-1])
        return Ranking.ordered(
            np.concatenate([head.chunks[order], ranking.chunks[len(head) :]]), np.concatenate([scores, tail])
        )

    def _relevance(self, head: Ranking) -> NDArray[np.float64]:
        values = head.scores.astype(np.float64)
        if self.scale == "score":
            return np.clip(values, 0.0, 1.0)
        spread = values[0] - values[-1]
        return (values - values[-1]) / spread if spread > 0 else np.ones_like(values)

    def describe(self) -> str:
        return f"diversify (lambda {self.lambda_:g})"


def _marginal_order(
    relevance: NDArray[np.float64], similarity: NDArray[np.float32], weight: float
) -> tuple[list[int], NDArray[np.float64]]:
    """The greedy order of n candidates and the score of every pick; ties go to the earlier candidate.

    `relevance` (n,) and `similarity` (n, n) lie between 0 and 1.
    """
    closest = np.zeros(len(relevance))
    open_ = np.ones(len(relevance), dtype=np.bool_)
    order: list[int] = []
    scores = np.empty(len(relevance))
    for step in range(len(relevance)):
        value = np.where(open_, weight * relevance + (1 - weight) * (1 - closest), -np.inf)
        pick = int(np.argmax(value))
        order.append(pick)
        scores[step] = value[pick]
        open_[pick] = False
        np.maximum(closest, similarity[pick], out=closest)
    return order, scores


@option("p8.limit")
@dataclass(frozen=True)
class LimitPerDocument(Filter):
    """Keep the first `max_per_doc` hits of every document (0: no limit). Seed 000, P8 component B."""

    max_per_doc: Natural = 2  # maximum results of a document; 0: no limit

    counted: ClassVar[str] = "after_doc_limit"
    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.PARENTS: "parents would pass by the limit on their children"}

    def keep(self, state: QueryState, index: Index) -> NDArray[np.bool_]:
        """The first hits of every document."""
        documents = index.chunks.document[fused(state).chunks]
        if self.max_per_doc == 0:
            return np.ones(len(documents), dtype=np.bool_)
        counts: dict[int, int] = {}
        within = np.zeros(len(documents), dtype=np.bool_)
        for position, document in enumerate(documents.tolist()):
            counts[document] = counts.get(document, 0) + 1
            within[position] = counts[document] <= self.max_per_doc
        return within

    def describe(self) -> str:
        return f"keep {self.max_per_doc} per document"
