"""Runs many pipelines over the same queries, doing shared work once.

A stage that follows the same stages over the same artefacts runs once for all pipelines. A retriever answers each
distinct question once, so a change of a fusion weight or of a classification does not repeat the search. The results
equal those of each pipeline alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from cachetools import LRUCache

from ragbench.base import progress
from ragbench.base.fingerprint import digest
from ragbench.base.types import Query, QueryState, Ranking
from ragbench.index.index import Index
from ragbench.search.engine.pipeline import Pipeline, start
from ragbench.search.stages.stage import Retriever, Stage

_Question = tuple[str, Hashable]
"""The key of a retriever over its artefacts, and the question it is asked."""


_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


@dataclass(frozen=True)
class Arm:
    """A pipeline over an index, under a name."""

    name: str
    pipeline: Pipeline
    index: Index


_Arm = TypeVar("_Arm", bound=Arm)


@dataclass(frozen=True)
class Outcome:
    """The run of one arm: the names of its stages and the states after each of them."""

    arm: str
    stages: tuple[str, ...]
    states: tuple[tuple[QueryState, ...], ...]

    @property
    def final(self) -> tuple[QueryState, ...]:
        """The states at the end of the pipeline."""
        return self.states[-1]


def stage_key(stage: Stage, index: Index) -> str:
    """A digest of a stage's work: its class, its parameters, and the artefacts and models it reads."""
    return digest([type(stage).__module__, stage, index.fingerprints(stage.needs)])


def prefix_keys(arm: Arm) -> list[str]:
    """For each stage of an arm, a digest of the work up to and including it. Equal digests mean equal states."""
    keys = (stage_key(stage, arm.index) for _, stage in arm.pipeline)
    return list(accumulate(keys, lambda prefix, key: digest([prefix, key]), initial=""))[1:]


def in_tree_order(arms: Sequence[_Arm], keys: Mapping[str, Sequence[str]]) -> list[_Arm]:
    """The arms in the order of their prefix tree; `keys`: by arm, one for each of its prefixes."""
    rank: dict[str, int] = {}
    for key in (key for arm in arms for key in keys[arm.name]):
        rank.setdefault(key, len(rank))
    return sorted(arms, key=lambda arm: [rank[key] for key in keys[arm.name]])


class Session:
    """Runs pipelines over the same queries one after another; later ones reuse the results of earlier ones.

    Keeps the states after every prefix and the answers of every retriever, up to `limit_bytes`; the least recently used
    are dropped first. `computed` and `reused` count stages; `tick` is called after each computed stage.
    """

    def __init__(
        self, queries: Sequence[Query], limit_bytes: float = 512 << 20, tick: Callable[[], None] = lambda: None
    ) -> None:
        self.limit_bytes = limit_bytes
        self._start = tuple(start(queries))
        self._prefixes: LRUCache[str, tuple[QueryState, ...]] = LRUCache(limit_bytes / 2, _bytes_of_states)
        self._answers: LRUCache[_Question, Ranking] = LRUCache(limit_bytes / 2, _bytes_of_ranking)
        self._tick = tick
        self.computed = self.reused = 0

    def outcome(self, arm: Arm) -> Outcome:
        """The states after each stage of an arm; the same as when the arm runs alone."""
        arm.index.prepare(arm.pipeline.needs)
        keys = iter(prefix_keys(arm))

        def step(name: str, stage: Stage, states: Sequence[QueryState], index: Index) -> Sequence[QueryState]:
            key = next(keys)
            if (cached := self._prefixes.get(key)) is not None:
                self.reused += 1
                return cached
            new_states = tuple(_run_stage(stage, states, index, self._answers))
            _store(self._prefixes, key, new_states)
            self.computed += 1
            self._tick()
            return new_states

        trail = [(name, tuple(states)) for name, states in arm.pipeline.steps(self._start, arm.index, step)]
        return Outcome(arm.name, tuple(name for name, _ in trail), tuple(states for _, states in trail))

    def forget_all_but(self, keys: Sequence[str]) -> None:
        """Drop the states after other prefixes than these."""
        for key in set(self._prefixes) - set(keys):
            del self._prefixes[key]


def execute(arms: Sequence[Arm], queries: Sequence[Query]) -> Iterator[Outcome]:
    """Run every arm over the queries, sorted so that arms with a common prefix follow each other.

    Each distinct prefix runs once, and its states are dropped as soon as no later arm begins with it.
    """
    keys = {arm.name: prefix_keys(arm) for arm in arms}
    distinct = {key for of_arm in keys.values() for key in of_arm}

    def tick() -> None:
        progress.report("running stages", session.computed, len(distinct))

    session = Session(queries, math.inf, tick)
    for number, arm in enumerate(in_tree_order(arms, keys), start=1):
        session.forget_all_but(keys[arm.name])
        with progress.arm(number, len(arms), arm.name):
            yield session.outcome(arm)


def _run_stage(
    stage: Stage, states: Sequence[QueryState], index: Index, answers: MutableMapping[_Question, Ranking]
) -> list[QueryState]:
    """Run a stage; a retriever's questions that were asked before get their answers from `answers`."""
    if not isinstance(stage, Retriever):
        return stage(states, index)
    key = stage_key(stage, index)
    questions = [(key, stage.question(state)) for state in states]
    answered = {question: answers[question] for question in questions if question in answers}
    new = {question: state for question, state in zip(questions, states, strict=True) if question not in answered}
    if new:
        new_answers = dict(zip(new, stage.retrieve(list(new.values()), index), strict=True))
        for question, ranking in new_answers.items():
            _store(answers, question, ranking)
        answered |= new_answers
    return [
        state.with_ranking(stage.source, answered[question]) for question, state in zip(questions, states, strict=True)
    ]


def _store(cache: MutableMapping[_K, _V], key: _K, value: _V) -> None:
    with suppress(ValueError):  # larger than the whole cache
        cache[key] = value


_HIT = 8  # bytes: a chunk number of 4 and a score of 4
_RANKING, _STATE = 500, 1500  # bytes of the objects around the hits, about


def _bytes_of_ranking(ranking: Ranking) -> int:
    return _RANKING + _HIT * len(ranking)


def _bytes_of_states(states: Sequence[QueryState]) -> int:
    """A rough size: a state with its fused ranking; rankings of sources count as answers of retrievers."""
    return sum(_STATE + _HIT * len(state.fused or ()) for state in states)
