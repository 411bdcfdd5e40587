"""The protocol of a stage: a value with parameters only; called with states and an index, it returns new states.

A stage keeps the length and the order of the states, never changes them, and gives a query the same answer alone as in
a batch. The words that it needs from earlier stages (`requires`), adds (`provides`) and excludes (`forbids`) are
checked when a pipeline is built; see `ragbench.search.engine.pipeline`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Validated
from ragbench.base.errors import RagbenchError
from ragbench.base.types import QueryState, Ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index
    from ragbench.models.chat import ChatSpec
    from ragbench.models.resolve import CrossEncoderSpec


class StateProperty(StrEnum):
    """What a stage may do to a state, so that later stages can require or forbid it. `meaning`: in a sentence.

    `override`: what turns on a stage that does it. A stage outside the package may provide words of its own.
    """

    meaning: str
    override: str

    def __new__(cls, value: str, meaning: str, override: str = "") -> StateProperty:
        """A fact with its name in a configuration, its meaning and its override."""
        fact = str.__new__(cls, value)
        fact._value_ = value
        fact.meaning = meaning
        fact.override = override
        return fact

    CLASS = "class", "the class of the query"
    """P3 has chosen weights of the sources."""
    FILTERS = "filters", "filters"
    """What documents must fulfil is known."""
    HYPOTHESIS = "hypothesis", "a hypothetical answer"
    """HyDE has written an answer to search for."""
    EXPANSION = "expansion", "an expanded query"
    """Terms or synonyms were added to the query."""
    EXPANDED = "expanded", "rewritten queries"
    """A language model has rewritten the query."""
    CANDIDATES = "candidates", "candidates"
    """The notes that lexical search v3 ranks are known."""
    V3_RANKING = "v3_ranking", "a ranking of lexical search v3"
    """Lexical search v3 has ranked its candidates."""
    RANKINGS = "rankings", "a ranking"
    """At least one source has been searched: `state.rankings`."""
    GRAPH_RANKING = "graph_ranking", "the ranking of source 'graph'"
    """Neighbours in the graph of links have been added as a source."""
    DYNAMIC_WEIGHTS = "dynamic_weights", "weights of this query"
    """The weights of the sources follow from their scores."""
    FOLDER_BOOST = "folder_boost", "boosted folders"
    """Folders with many hits were raised, before fusion."""
    GRAPH_BOOST = "graph_boost", "boosted neighbours"
    """Linked notes were raised, before fusion."""
    NORMALISED = "normalised", "normalised scores"
    """Scores of the sources lie on one scale."""
    FUSED = "fused", "a fused ranking"
    """There is one ranking: `state.fused`, which later stages reorder and shorten."""
    CALIBRATED = "calibrated", "calibrated scores", "calibration=on"
    """Fused scores are probabilities, from 0 to 1."""
    KEYWORDS = "keywords", "keyword scores"
    """Librarian's keyword scores are part of the scores."""
    COMMUNITY = "community", "boosted communities"
    """Documents of the communities of the best hits were raised."""
    RECENCY = "recency", "boosted recent documents"
    """Scores follow the age of documents."""
    RANKED = "ranked", "a learned order"
    """Trees have ordered the hits."""
    RERANKED = "reranked", "re-ranked hits"
    """A cross-encoder has ordered the hits."""
    SEMANTIC_DEDUP = "semantic_dedup", "hits without near copies"
    """Hits that mean the same were merged."""
    DIVERSE = "diverse", "diverse hits"
    """MMR has chosen the hits; scores are not confidences any more."""
    GUARANTEED = "guaranteed", "guaranteed hits"
    """Some hits must stay: `state.guaranteed`."""
    PARENTS = "parents", "parents instead of hits"
    """Hits were replaced by the larger chunks that they are part of."""
    CONTEXTS = "contexts", "contexts of the hits"
    """Neighbouring text was added to what is returned."""
    CUT = "cut", "the last cut"
    """The number of hits is final."""


@runtime_checkable
class Stage(Protocol):
    """One step of a pipeline. A stage that uses further models than the index's encoder declares them (`models_of`)."""

    @property
    def needs(self) -> frozenset[str]:
        """Parts of the index it reads, by attribute name."""
        ...

    requires: ClassVar[frozenset[str]]
    """What earlier stages must have provided: values of `StateProperty`."""
    provides: ClassVar[frozenset[str]]
    """What it adds."""
    forbids: ClassVar[Mapping[str, str]]
    """What must not have been provided yet, each with the reason."""

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Return one new state for every state, in order."""
        ...

    def describe(self) -> str:
        """The stage in a few words, for the sentence that a pipeline prints."""
        ...


FAILURES = (RagbenchError, OSError, ValueError, LookupError, ArithmeticError)
"""The errors of a search after which it is answered by a fallback, where the pipeline has one."""


@runtime_checkable
class FallsBack(Protocol):
    """A stage that answers when the pipeline fails."""

    def when_failed(self, state: QueryState, index: Index) -> Ranking:
        """The hits of a query whose search failed; none if this fails, too."""
        ...


def wait(stage: Stage) -> None:
    """Wait until a stage may be called: one that limits its requests has a method `wait`, which is not timed."""
    getattr(stage, "wait", lambda: None)()


@runtime_checkable
class Outside(Protocol):
    """A stage whose hits another system finds: `ask` only searches, and returns the states that it was given."""

    outside: ClassVar[bool]

    def ask(self, states: Sequence[QueryState], index: Index) -> Sequence[QueryState]:
        """Search for every state."""
        ...


NOTHING: frozenset[str] = frozenset()
FREE: Mapping[str, str] = {}


def models_of(stage: Stage) -> tuple[CrossEncoderSpec | ChatSpec, ...]:
    """The models that a stage asks in addition to the index's encoder: its attribute `models`, if it has one."""
    return tuple(getattr(stage, "models", ()))


def among(stage: Stage, sources: Sequence[Retriever]) -> Stage:
    """The stage in a pipeline with these sources: one that asks about them has a method `among`."""
    restricted: Stage = getattr(stage, "among", lambda _: stage)(sources)
    return restricted


class Retriever(Validated, ABC):
    """A stage that adds the ranking of one source; its answer depends on `question(state)` alone.

    So the executor runs a retriever once for equal questions, whatever the other stages are. `by` says how it searches,
    by `words` or by `meaning`; modes choose by it.
    """

    by: ClassVar[str | None] = None
    requires: ClassVar[frozenset[str]] = NOTHING
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "its ranking would come too late to be fused"}

    @property
    @abstractmethod
    def needs(self) -> frozenset[str]:
        """Parts of the index it reads."""

    @property
    @abstractmethod
    def source(self) -> str:
        """The name of its ranking."""

    def question(self, state: QueryState) -> Hashable:
        """Further inputs of the answer next to stage and index: the text for this source and the filters."""
        return state.text_for(self.source), state.filters

    @abstractmethod
    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """One ranking for every state."""

    def scores(self, state: QueryState, chunks: NDArray[np.int32], index: Index) -> NDArray[np.float64] | None:
        """The scores of any chunks, also of some that it did not return, shape (n,); None when it cannot score chunks.

        `state` holds its ranking.
        """
        return None

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Add this source's ranking to every state."""
        rankings = self.retrieve(states, index)
        return [state.with_ranking(self.source, ranking) for state, ranking in zip(states, rankings, strict=True)]


class StateStage(Validated, ABC):
    """A stage that changes each state independently. A class names only the declarations that differ from these."""

    requires: ClassVar[frozenset[str]] = NOTHING
    provides: ClassVar[frozenset[str]] = NOTHING
    forbids: ClassVar[Mapping[str, str]] = FREE

    @property
    def needs(self) -> frozenset[str]:
        """Parts of the index it reads: none."""
        return NOTHING

    @abstractmethod
    def apply(self, state: QueryState, index: Index) -> QueryState:
        """The state after this stage."""

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Change every state."""
        return [self.apply(state, index) for state in states]


class Reorder(StateStage):
    """A stage that replaces the fused ranking and nothing else."""

    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})

    @abstractmethod
    def reorder(self, state: QueryState, index: Index) -> Ranking:
        """The new fused ranking of a state."""

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Replace the fused ranking."""
        return replace(state, fused=self.reorder(state, index))


class Filter(StateStage):
    """A stage that drops fused hits; `counted` names how many are left. Guaranteed hits always stay."""

    counted: ClassVar[str]
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})

    @abstractmethod
    def keep(self, state: QueryState, index: Index) -> NDArray[np.bool_]:
        """Which fused hits stay, shape (n,)."""

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Drop hits of the fused ranking."""
        return state.filtered(self.counted, keep_hits(state, self.keep(state, index)))


def fused(state: QueryState) -> Ranking:
    """The fused ranking of a state. A checked pipeline has one after fusion."""
    if state.fused is None:
        raise TypeError(f"query {state.query.qid} has not been fused yet")
    return state.fused


def current_ranking(state: QueryState, source: str) -> Ranking:
    """The fused ranking, or before fusion that of one source; empty when there is none."""
    return state.rankings.get(source, Ranking.empty()) if state.fused is None else state.fused


def with_current_ranking(state: QueryState, source: str, ranking: Ranking) -> QueryState:
    """The state with the ranking that `current_ranking` reads replaced."""
    return state.with_ranking(source, ranking) if state.fused is None else replace(state, fused=ranking)


def keep_hits(state: QueryState, mask: NDArray[np.bool_]) -> Ranking:
    """The fused hits where `mask` holds, and all guaranteed ones."""
    ranking = fused(state)
    if state.guaranteed:
        mask = mask | np.isin(ranking.chunks, list(state.guaranteed))
    return ranking.keep(mask)


def first_of_similar(similarity: NDArray[np.float32], threshold: float) -> NDArray[np.bool_]:
    """Which of n items, best first, stay if each must differ from every better one that stays.

    `similarity` has shape (n, n); items at or above `threshold` are too similar. An item is compared with those that
    stay, not with those already dropped.
    """
    close = similarity >= threshold
    stays = np.zeros(len(similarity), dtype=np.bool_)
    for i in range(len(similarity)):
        stays[i] = not (close[i] & stays).any()
    return stays
