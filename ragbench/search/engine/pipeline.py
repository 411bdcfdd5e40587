"""A pipeline: an ordered, named tuple of stages, checked when it is built; and many over the same queries.

`execute` and `Session` do shared work once: a stage that follows the same stages over the same artefacts runs once for
all pipelines. A retriever answers each distinct question once, so a change of a fusion weight or of a classification
does not repeat the search. The results equal those of each pipeline alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeVar

from cachetools import LRUCache

from ragbench.base import progress
from ragbench.base.fingerprint import canonical, digest
from ragbench.base.html import render
from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import ConfigError, Filters, Query
from ragbench.models import CrossEncoder, Encoder
from ragbench.models.chat import ChatSpec
from ragbench.models.resolve import CrossEncoderSpec
from ragbench.search.engine.modes import ModeSpec
from ragbench.search.stages.filters import filters_of
from ragbench.search.stages.stage import Index, Retriever, Stage, StateProperty

_S = TypeVar("_S")
_Step = Callable[[str, Stage, Sequence[QueryState], "Index"], Sequence[QueryState]]
"""Runs a named stage over states and an index."""


LONGEST = 10_000
"""Characters of a query that are used, which bounds the time of one search; a note says when there were more."""

_HTML = """\
<ol class="ragbench-pipeline">
{% for name, stage in stages %}
<li><b>{{ name }}</b> {{ stage.describe() }}</li>
{% endfor %}
</ol>
"""


def _call(name: str, stage: Stage, states: Sequence[QueryState], index: Index) -> Sequence[QueryState]:
    """The default step: runs the stage and nothing else."""
    return stage(states, index)


class MissingInput(ConfigError):
    """A stage whose input no earlier stage provides; `override` turns on a stage that does, empty if unknown."""

    def __init__(self, stage: str, needed: str, override: str) -> None:
        self.meaning, self.override = _attribute(needed, "meaning") or repr(needed), override
        remedy = f"add {override}" if override else "move it later in `order` or turn on the stage that does"
        super().__init__(f"stage '{stage}' needs {self.meaning}, which no stage before it provides: {remedy}")


@dataclass(frozen=True)
class Pipeline:
    """Named stages in the order they run.

    Raises ConfigError for an invalid order: a stage whose input no earlier stage provides, a stage that comes too late,
    a pipeline without fusion. `modes` says what requests may ask for instead of the whole pipeline.
    """

    stages: tuple[tuple[str, Stage], ...]
    modes: Mapping[str, ModeSpec] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        provided: dict[str, str] = {}
        for name, stage in self.stages:
            for needed in sorted(stage.requires - set(provided)):
                later = any(needed in stage.provides for _, stage in self.stages)
                raise MissingInput(name, needed, "" if later else _attribute(needed, "override"))
            for word, reason in sorted(stage.forbids.items()):
                if word in provided:
                    raise ConfigError(f"stage '{name}' cannot follow '{provided[word]}': {reason}")
            for word in stage.provides:
                provided.setdefault(word, name)
        if StateProperty.RANKINGS not in provided:
            raise ConfigError("the pipeline retrieves nothing: turn on at least one of the retrieving stages")
        if StateProperty.FUSED not in provided:
            raise ConfigError("the pipeline has no fusion: turn on the stage 'fuse'")

    def __iter__(self) -> Iterator[tuple[str, Stage]]:
        return iter(self.stages)

    def __len__(self) -> int:
        return len(self.stages)

    def __repr__(self) -> str:
        return ", then ".join(stage.describe() for _, stage in self.stages) + "."

    def _repr_html_(self) -> str:
        return render(_HTML, stages=self.stages)

    def all_of(self, cls: type[_S]) -> dict[str, _S]:
        """The stages of a class by their entries of `order`."""
        return {name: stage for name, stage in self.stages if isinstance(stage, cls)}

    def first(self, cls: type[_S]) -> _S | None:
        """The first stage of a class; None without one."""
        return next(iter(self.all_of(cls).values()), None)

    @property
    def needs(self) -> frozenset[str]:
        """The parts of the index that its stages read."""
        return frozenset().union(*(stage.needs for _, stage in self.stages))

    @property
    def encoders(self) -> tuple[str, ...]:
        """The encoders among the parts it needs: that of the index and those of further sources."""
        return tuple(sorted(need for need in self.needs if need.partition(":")[0] == "encoder"))

    @property
    def models(self) -> tuple[CrossEncoderSpec | ChatSpec, ...]:
        """The models that its stages use in addition to the index's encoder, each once, in order."""
        return tuple(dict.fromkeys(model for _, stage in self.stages for model in stage.models))

    def digests(self, index: Index) -> dict[str, str]:
        """The digest of every encoder and cross-encoder that it uses, by name. ModelError when one cannot be found."""
        used: list[Encoder | CrossEncoder] = [index.part(need) for need in self.encoders]
        used += [index.models.cross_encoder(spec) for spec in self.models if isinstance(spec, CrossEncoderSpec)]
        return {model.name: model.digest for model in used}

    @property
    def live(self) -> bool:
        """Whether it asks an external search: such a pipeline cannot be prepared, masked or exported."""
        return any(stage.outside for _, stage in self.stages)

    @property
    def recorded(self) -> bool:
        """Whether its hits were recorded before: they belong to topics, and nothing of it can be timed or asked."""
        return any(stage.recorded for _, stage in self.stages)

    @property
    def lasting(self) -> bool:
        """Whether equal fingerprints mean equal results in another process; an object has a name there at most."""
        return all(stage.lasting for _, stage in self.stages)

    @property
    def fingerprint(self) -> str:
        """A digest over its stages, their parameters, and the content of the run file that one may read."""
        contents = [stage.content for _, stage in self.stages if stage.content]
        return digest([*([name, canonical(stage)] for name, stage in self.stages), *contents])

    def require_topics(self, qids: Sequence[str]) -> None:
        """Raise LiveError when a stage has recorded hits, but none for these topics, or cannot open its index."""
        for _, stage in self.stages:
            stage.require_topics(qids)

    def steps(
        self, states: Sequence[QueryState], index: Index, step: _Step = _call
    ) -> Iterator[tuple[str, Sequence[QueryState]]]:
        """The name of each stage and the states after it, one stage at a time.

        This is the only loop over stages: observers of a pipeline iterate over it. `step` runs a stage.
        """
        for name, stage in self.stages:
            states = step(name, stage, states, index)
            yield name, states

    def __call__(self, queries: Sequence[Query], index: Index) -> list[QueryState]:
        """Run queries through every stage."""
        states: Sequence[QueryState] = ()
        for _, states_after in self.steps(start(queries), index):
            states = states_after
        return list(states)


def _attribute(name: str, attribute: str) -> str:
    return next((str(getattr(property_, attribute)) for property_ in StateProperty if property_ == name), "")


def start(queries: Sequence[Query]) -> list[QueryState]:
    """The states with which a pipeline begins; the texts lose control characters and outer white space.

    Raises ConfigError for a query whose filter cannot be used.
    """
    states = [QueryState(replace(query, text=clean(query.text)), filters=_filters(query)) for query in queries]
    note = f"only the first {LONGEST:,} characters of the query are used"
    return [state.with_note(note) if len(state.query.text) == LONGEST else state for state in states]


def _filters(query: Query) -> Filters | None:
    """The filter of the query, None without one. Raises ConfigError, with the query, for one that cannot be used."""
    try:
        conditions = filters_of(query.filter).conditions if query.filter else Filters()
    except ConfigError as error:
        raise ConfigError(f"query '{query.qid}': {error}") from None
    return None if conditions == Filters() else conditions


def clean(text: str) -> str:
    """The text without control characters and outer white space, and no more than its first `LONGEST` characters."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text).strip()[:LONGEST]


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
