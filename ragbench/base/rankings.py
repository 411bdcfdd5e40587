"""What a pipeline answers with: rankings, and the state of a query between stages. See `ragbench.base.types`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.types import Filters, Query, QueryClass

_ORIGINAL_COUNT = "original_count"
_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Chunk numbers (int32, shape (n,)) and their scores (float32, shape (n,)), best first, no chunk twice.

    Scores never increase. Build one with `Ranking.of`, which sorts and breaks ties by chunk number, or with
    `Ranking.ordered`, which keeps an order that is already decided. `of_documents`: documents were ranked, and each
    stands here with all of its chunks, which have its score and share its rank. `query_vector`, shape (dim,), is that
    of the query in a ranking by vectors: any other chunk can be scored with it.
    """

    chunks: NDArray[np.int32]
    scores: NDArray[np.float32]
    of_documents: bool = False
    query_vector: NDArray[np.float32] | None = None

    @staticmethod
    def of(
        chunks: Sequence[int] | NDArray[Any], scores: Sequence[float] | NDArray[Any], depth: int | None = None
    ) -> Ranking:
        """Sort by score, ties by chunk number, and keep the first `depth`."""
        numbers = np.asarray(chunks, dtype=np.int32)
        values = np.asarray(scores, dtype=np.float32)
        order = np.lexsort((numbers, -values))[:depth]
        return Ranking.ordered(numbers[order], values[order])

    @staticmethod
    def ordered(
        chunks: Sequence[int] | NDArray[Any], scores: Sequence[float] | NDArray[Any], of_documents: bool = False
    ) -> Ranking:
        """Take chunks and scores in the order given, which must not increase in score."""
        numbers = np.array(chunks, dtype=np.int32)
        values = np.array(scores, dtype=np.float32)
        numbers.flags.writeable = values.flags.writeable = False
        return Ranking(numbers, values, of_documents)

    @staticmethod
    def empty() -> Ranking:
        """No hits."""
        return Ranking.ordered((), ())

    def __len__(self) -> int:
        return len(self.chunks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        return np.array_equal(self.chunks, other.chunks) and np.array_equal(self.scores, other.scores)

    __hash__ = None  # type: ignore[assignment]

    def keep(self, mask: NDArray[np.bool_]) -> Ranking:
        """The hits where `mask` (bool, shape (n,)) holds, order and scores unchanged."""
        return Ranking.ordered(self.chunks[mask], self.scores[mask], self.of_documents)

    def head(self, depth: int) -> Ranking:
        """The first `depth` hits."""
        if len(self) <= depth:
            return self
        return Ranking.ordered(self.chunks[:depth], self.scores[:depth], self.of_documents)


@dataclass(frozen=True, slots=True)
class QueryState:
    """A query on its way through the pipeline; a source is a retriever by name."""

    query: Query
    filters: Filters | None = None
    """Which documents every source may find; None: all."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """By source, the text to send to it where that differs from the query's own (`text_for`)."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """By source, a factor that fusion multiplies with its own weight; 1 when absent."""
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    """One ranking by source."""
    fused: Ranking | None = None
    """The ranking after fusion and every later stage; None before it."""
    unanimous: float = 0.0
    """The fused score of a hit that every source with hits ranks first; 0 where scores were fused, not ranks."""
    query_class: QueryClass | None = None
    """What kind of query it is, if a stage has asked."""
    counts: tuple[tuple[str, int], ...] = ()
    """(filter, hits left) in the order applied; the first is `original_count`, the hits before any filter."""
    clusters_merged: int = 0
    """The hits that semantic deduplication merged."""
    guaranteed: Mapping[int, str] = field(default_factory=dict)
    """Hits that no later stage may drop, each with how the query named it (`title-match`)."""
    notes: tuple[str, ...] = ()
    """What stages decided, in words, for explanations."""
    facts: Mapping[type, Any] = field(default_factory=dict)
    """By its class, what a stage found out for later ones that know the class (`fact`)."""
    contexts: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """By hit, the chunks whose texts are returned for it, in text order, the hit itself included."""
    unmatched: tuple[tuple[int, str], ...] = ()
    """Hits of a live search in no document of the collection: the number of hits of `fused` before each, its name."""

    def hits_with_unmatched(self) -> list[tuple[int, float, str]]:
        """(chunk number, score, name) of all hits in order; unmatched ones have the number -1, others an empty name."""
        ranking = self.fused or Ranking.empty()
        hits = list(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))
        merged: list[tuple[int, float, str]] = [(chunk, score, "") for chunk, score in hits]
        for position, name in reversed(self.unmatched):
            merged.insert(position, (-1, hits[position][1] if position < len(hits) else 0.0, name))
        return merged

    def text_for(self, source: str) -> str:
        """The text to send to a source."""
        return self.texts.get(source, self.query.text)

    def with_text(self, source: str, text: str) -> QueryState:
        """The same state with another text for one source."""
        return replace(self, texts={**self.texts, source: text})

    def with_weight(self, source: str, factor: float) -> QueryState:
        """The same state with the weight of one source multiplied by `factor`."""
        return replace(self, weights={**self.weights, source: self.weights.get(source, 1.0) * factor})

    def with_ranking(self, source: str, ranking: Ranking) -> QueryState:
        """The same state with the ranking of one source."""
        return replace(self, rankings={**self.rankings, source: ranking})

    def fact(self, kind: type[_Fact]) -> _Fact | None:
        """What an earlier stage found out of this kind; None without one."""
        return self.facts.get(kind)

    def with_fact(self, fact: object) -> QueryState:
        """The same state with a fact, which replaces one of its class."""
        return replace(self, facts={**self.facts, type(fact): fact})

    def with_note(self, note: str) -> QueryState:
        """The same state with one more note."""
        return replace(self, notes=(*self.notes, note))

    def filtered(self, stage: str, ranking: Ranking) -> QueryState:
        """The same state with the fused ranking replaced and its new length counted under the filter's name."""
        count_before = 0 if self.fused is None else len(self.fused)
        counts = self.counts or ((_ORIGINAL_COUNT, count_before),)
        return replace(self, fused=ranking, counts=(*counts, (stage, len(ranking))))


@dataclass(frozen=True, slots=True)
class CompressionStats:
    """How many hits each filter left, under the names of seed 000, P8; a filter that is off repeats the number before.

    `original_count` counts the hits of fusion, `clusters_merged` those that semantic deduplication merged with others.
    """

    original_count: int
    after_threshold: int
    after_content_dedup: int
    after_ngram_dedup: int
    after_dedup: int
    after_doc_limit: int
    clusters_merged: int

    @staticmethod
    def of(state: QueryState) -> CompressionStats:
        """The numbers of a state at the end of its pipeline."""
        counted = dict(state.counts)
        remaining = counted.get(_ORIGINAL_COUNT, 0 if state.fused is None else len(state.fused))
        values = {_ORIGINAL_COUNT: remaining}
        for name in ("after_threshold", "after_content_dedup", "after_ngram_dedup", "after_dedup", "after_doc_limit"):
            values[name] = remaining = counted.get(name, remaining)
        return CompressionStats(**values, clusters_merged=state.clusters_merged)
