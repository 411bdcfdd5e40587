"""The protocol of a stage: a value with parameters only; called with states and an index, it returns new states.

A stage keeps the length and the order of the states, never changes them, and gives a query the same answer alone as in
a batch. The words that it needs from earlier stages (`requires`), adds (`provides`) and excludes (`forbids`) are
checked when a pipeline is built; see `ragbench.search.engine.pipeline`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Checked
from ragbench.base.types import QueryState, Ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index
    from ragbench.models.chat import ChatSpec
    from ragbench.models.resolve import CrossEncoderSpec


@runtime_checkable
class Stage(Protocol):
    """One step of a pipeline. A stage that asks models besides the index's encoder declares them (`models_of`)."""

    @property
    def needs(self) -> frozenset[str]:
        """Parts of the index it reads, by attribute name."""
        ...

    requires: ClassVar[frozenset[str]]
    """What earlier stages must have provided."""
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


def wait(stage: Stage) -> None:
    """Wait until a stage may be called: one that limits its requests has a method `wait`, which is not timed."""
    getattr(stage, "wait", lambda: None)()


NOTHING: frozenset[str] = frozenset()
FREE: Mapping[str, str] = {}


def models_of(stage: Stage) -> tuple[CrossEncoderSpec | ChatSpec, ...]:
    """The models that a stage asks besides the index's encoder: its attribute `models`, if it has one."""
    return tuple(getattr(stage, "models", ()))


def among(stage: Stage, sources: Sequence[Retriever]) -> Stage:
    """The stage in a pipeline with these sources: one that asks about them has a method `among`."""
    known: Stage = getattr(stage, "among", lambda _: stage)(sources)
    return known


class Retriever(Checked, ABC):
    """A stage that adds the ranking of one source; its answer depends on `question(state)` alone.

    So the executor runs a retriever once for equal questions, whatever the other stages are. `by` says how it searches,
    by `words` or by `meaning`; modes choose by it.
    """

    by: ClassVar[str | None] = None
    requires: ClassVar[frozenset[str]] = NOTHING
    provides: ClassVar[frozenset[str]] = frozenset({"rankings"})
    forbids: ClassVar[Mapping[str, str]] = {"fused": "its ranking would come too late to be fused"}

    @property
    @abstractmethod
    def needs(self) -> frozenset[str]:
        """Parts of the index it reads."""

    @property
    @abstractmethod
    def source(self) -> str:
        """The name of its ranking."""

    def question(self, state: QueryState) -> Hashable:
        """All that the answer depends on besides the stage and the index: the text for this source and the filters."""
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
    for place in range(len(similarity)):
        stays[place] = not (close[place] & stays).any()
    return stays
