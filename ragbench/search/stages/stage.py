"""The protocol of a stage: a value with parameters only; called with states and an index, it returns new states.

A stage keeps the length and the order of the states, never changes them, and gives a query the same answer alone as in
a batch. The words that it needs from earlier stages (`requires`), adds (`provides`) and excludes (`forbids`) are
checked when a pipeline is built; see `ragbench.search.engine.pipeline`. A module with a stage imports from here the
classes that it extends, and the types of what it receives and returns.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.options import Validated
from ragbench.base.rankings import QueryState as QueryState, Ranking as Ranking
from ragbench.base.types import Filters as Filters, RagbenchError
from ragbench.index.index import Index as Index
from ragbench.models.chat import ChatSpec
from ragbench.models.resolve import CrossEncoderSpec


class StateProperty(StrEnum):
    """What a stage may do to a state, so that later stages can require or forbid it. `meaning`: in a sentence.

    `override`: what turns on a stage that does it. A stage outside the package may provide words of its own.
    """

    meaning: str
    override: str

    def __new__(cls, value: str, meaning: str, override: str = "") -> StateProperty:
        """A property with its name, its meaning and its override."""
        made = str.__new__(cls, value)
        made._value_ = value
        made.meaning = meaning
        made.override = override
        return made

    FILTERS = "filters", "filters"
    """What documents must fulfil is known."""
    HYPOTHESIS = "hypothesis", "a hypothetical answer"
    """HyDE has written an answer to search for."""
    RANKINGS = "rankings", "a ranking"
    """At least one source has been searched: `state.rankings`."""
    FUSED = "fused", "a fused ranking"
    """There is one ranking: `state.fused`, which later stages reorder and shorten."""
    CALIBRATED = "calibrated", "calibrated scores", "calibration=on"
    """Fused scores are probabilities, from 0 to 1."""
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
    CUT = "cut", "the last cut"
    """The number of hits is final."""


FAILURES = (RagbenchError, OSError, ValueError, LookupError, ArithmeticError, RuntimeError, TypeError)
"""The errors of a search after which it is answered by a fallback, where the pipeline has one."""

NOTHING: frozenset[str] = frozenset()
FREE: Mapping[str, str] = {}


class Stage(Validated, ABC):
    """One step of a pipeline: everything that the engine may ask of it, each with a default."""

    requires: ClassVar[frozenset[str]] = NOTHING
    """What earlier stages must have provided: values of `StateProperty`."""
    provides: ClassVar[frozenset[str]] = NOTHING
    """What it adds."""
    forbids: ClassVar[Mapping[str, str]] = FREE
    """What must not have been provided yet, each with the reason."""
    by: ClassVar[str | None] = None
    """How it retrieves, `words` or `meaning`, by which modes choose; None: in every mode."""
    in_mode_alone: ClassVar[bool] = False
    """Whether it takes part only in the mode that asks for it."""
    options: ClassVar[frozenset[str]] = NOTHING
    """The options of a search (`ragbench.search.engine.answer`) that it supports."""
    outside: ClassVar[bool] = False
    """Whether another system finds its hits."""
    recorded: ClassVar[bool] = False
    """Whether its hits were recorded before, so that nothing of it can be timed."""
    in_process: ClassVar[bool] = False
    """Whether it calls a Python object of this process."""

    @property
    def needs(self) -> frozenset[str]:
        """Parts of the index that it reads, by attribute name: none."""
        return NOTHING

    @property
    def models(self) -> tuple[CrossEncoderSpec | ChatSpec, ...]:
        """The models that it uses in addition to the encoder of the index: none."""
        return ()

    @property
    def content(self) -> str:
        """A digest of what its results depend on besides its parameters and the index: nothing."""
        return ""

    @property
    def lasting(self) -> bool:
        """Whether equal parameters give equal results in another process."""
        return True

    @abstractmethod
    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Return one new state for every state, in order."""

    def describe(self) -> str:
        """The stage in a few words, for the sentence that a pipeline prints: its class and parameters."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()
        values = vars(self)  # a frozen dataclass has nothing but its fields
        return " ".join([words, *(f"{name}={value}" for name, value in values.items())])

    def among(self, sources: Sequence[Retriever]) -> Stage:
        """The stage in a pipeline with these retrievers; itself unless it depends on them."""
        return self

    def require_topics(self, qids: Sequence[str]) -> None:
        """Raise LiveError or ConfigError when it cannot answer any of these topics."""

    def wait(self) -> None:
        """Wait until it may be called, if it limits its requests; this is not timed."""

    def ask(self, states: Sequence[QueryState], index: Index) -> Sequence[QueryState]:
        """Do what counts as the time of a query: all of its work."""
        return self(states, index)

    def returning(self, n: int) -> Stage:
        """The stage in a search that returns `n` hits."""
        return self

    def returning_all(self, n: int) -> Stage:
        """The stage in a search that asks for all hits, of which `n` are returned."""
        return self.returning(n)

    def of_time(self, after: str | None, before: str | None) -> Stage | None:
        """The stage in a search for all notes of a time range; None if it takes no part."""
        return None

    def last_choice(self, n: int) -> Stage | None:
        """A stage that chooses `n` of this one's hits at the end; None if this one chooses no more than `n`."""
        return None

    def when_failed(self, state: QueryState, index: Index) -> Ranking | None:
        """The hits of a query whose search failed; None if it has no fallback."""
        return None

    def explain(self, state: QueryState, index: Index, chunk: int) -> Mapping[str, Any]:
        """Reasons for the place of a chunk, by name: none."""
        return {}


class Retriever(Stage):
    """A stage that adds the ranking of one source; its answer depends on `question(state)` alone.

    So the executor runs a retriever once for equal questions, whatever the other stages are.
    """

    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.FUSED: "its ranking would come too late to be fused"}

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

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Add this source's ranking to every state."""
        rankings = self.retrieve(states, index)
        return [state.with_ranking(self.source, ranking) for state, ranking in zip(states, rankings, strict=True)]


class StateStage(Stage):
    """A stage that changes each state independently. A class names only the declarations that differ from these."""

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


class Boost(Reorder):
    """A stage that multiplies the fused scores by factors of documents."""

    @property
    def needs(self) -> frozenset[str]:
        """The chunk table."""
        return frozenset({"chunks"})

    @abstractmethod
    def factors(self, documents: NDArray[np.int32], index: Index) -> NDArray[np.floating[Any]]:
        """The factor of every hit, shape (n,), by the numbers of their documents, best first."""

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        """Multiply the scores and sort by them."""
        ranking = fused(state)
        return Ranking.of(ranking.chunks, ranking.scores * self.factors(index.chunks.document[ranking.chunks], index))


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
