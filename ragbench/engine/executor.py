"""Quality: run many pipelines over many queries, doing shared work once.

Pipelines form a prefix tree of stage values: a stage that follows the same stages over the same artefacts runs once,
whatever the pipelines are called. Below the tree, a retriever answers each distinct question once, so that a change of
a fusion weight, or of a classification before it, does not search again. The results equal those of each alone.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from ragbench.engine.pipeline import Pipeline, start
from ragbench.fingerprint import digest
from ragbench.index.index import Index
from ragbench.stages.stage import Retriever, Stage
from ragbench.types import Query, QueryState, Ranking

if TYPE_CHECKING:
    from ragbench.index.artefacts import Artefact


@dataclass(frozen=True)
class Arm:
    """A pipeline over an index, under a name."""

    name: str
    pipeline: Pipeline
    index: Index


@dataclass
class Node:
    """A stage at its place in the prefix tree. `key` names the stage, all before it and the artefacts they read."""

    key: str
    name: str
    stage: Stage
    index: Index
    arms: list[str] = field(default_factory=list)
    children: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What one arm did: the states after each of its stages, last first to be of interest."""

    arm: str
    stages: tuple[str, ...]
    states: tuple[tuple[QueryState, ...], ...]

    @property
    def final(self) -> tuple[QueryState, ...]:
        """The states at the end of the pipeline."""
        return self.states[-1]


def plan(arms: Sequence[Arm], prepare: bool = True) -> dict[str, Node]:
    """The prefix tree of the arms: its roots by key. Opens (and builds) the artefacts the arms need if `prepare`."""
    roots: dict[str, Node] = {}
    for arm in arms:
        if prepare:
            arm.index.prepare(arm.pipeline.needs)
        level, key = roots, ""
        for name, stage in arm.pipeline:
            key = digest([key, stage_key(stage, arm.index)])
            node = level.setdefault(key, Node(key, name, stage, arm.index))
            node.arms.append(arm.name)
            level = node.children
    return roots


def stage_key(stage: Stage, index: Index) -> str:
    """A name for a stage's work: its class and parameters and the artefacts and models it reads."""
    return digest([type(stage).__module__, stage, index.fingerprints(stage.needs)])


def execute(
    arms: Sequence[Arm], queries: Sequence[Query], progress: Callable[[str, int, int], None] | None = None
) -> Iterator[Outcome]:
    """Run every arm over the queries, sharing prefixes and retrievals; arms finish in the order of the tree."""
    roots = plan(arms)
    lengths = {arm.name: len(arm.pipeline) for arm in arms}
    total = count(roots)
    answers: dict[tuple[str, Hashable], Ranking] = {}
    done = 0

    def walk(
        node: Node, before: Sequence[QueryState], names: tuple[str, ...], trail: tuple[tuple[QueryState, ...], ...]
    ) -> Iterator[Outcome]:
        nonlocal done
        after = tuple(apply(node.stage, before, node.index, answers))
        done += 1
        if progress is not None:
            progress("running stages", done, total)
        names, trail = (*names, node.name), (*trail, after)
        for arm in node.arms:
            if lengths[arm] == len(names):
                yield Outcome(arm, names, trail)
        for child in node.children.values():
            yield from walk(child, after, names, trail)

    for root in roots.values():
        yield from walk(root, start(queries), (), ())


def apply(
    stage: Stage,
    states: Sequence[QueryState],
    index: Index,
    answers: MutableMapping[tuple[str, Hashable], Ranking],
) -> list[QueryState]:
    """Run a stage, answering a retriever's questions from `answers` where they have been asked before."""
    if not isinstance(stage, Retriever):
        return stage(states, index)
    key = stage_key(stage, index)
    asked = [(key, stage.question(state)) for state in states]
    known = {question: answers[question] for question in asked if question in answers}
    new: dict[tuple[str, Hashable], QueryState] = {
        question: state for question, state in zip(asked, states, strict=True) if question not in known
    }
    if new:
        found = dict(zip(new, stage.retrieve(list(new.values()), index), strict=True))
        answers.update(found)
        known |= found
    return [state.with_ranking(stage.source, known[question]) for question, state in zip(asked, states, strict=True)]


class Session:
    """Runs pipelines over the same queries one after another; what one computed, later ones find again.

    For searches that decide on the next pipeline when they have seen the last, where `execute` wants all at once. Keeps
    the states after every prefix and every retriever's answers, some `limit_bytes` of them; what was not used for
    longest goes first. `computed` and `reused` count stages.
    """

    def __init__(self, queries: Sequence[Query], limit_bytes: int = 512 << 20) -> None:
        self._start = tuple(start(queries))
        self.limit_bytes = limit_bytes
        self._prefixes: _Recent[str, tuple[QueryState, ...]] = _Recent(limit_bytes // 2, _bytes_of_states)
        self._answers: _Recent[tuple[str, Hashable], Ranking] = _Recent(limit_bytes // 2, _bytes_of_ranking)
        self.computed = self.reused = 0

    def final(self, pipeline: Pipeline, index: Index) -> tuple[QueryState, ...]:
        """The states at the end of the pipeline, those that it gives alone."""
        index.prepare(pipeline.needs)
        keys, key = [], ""
        for _, stage in pipeline:
            key = digest([key, stage_key(stage, index)])
            keys.append(key)
        done = next((n for n in range(len(keys), 0, -1) if keys[n - 1] in self._prefixes), 0)
        states = self._prefixes[keys[done - 1]] if done else self._start
        for key, (_, stage) in list(zip(keys, pipeline, strict=True))[done:]:
            states = tuple(apply(stage, states, index, self._answers))
            self._prefixes[key] = states
        self.computed += len(keys) - done
        self.reused += done
        return states

    def outcome(self, arm: Arm) -> Outcome:
        """What `execute` gives for the arm, with the states after each of its stages."""
        arm.index.prepare(arm.pipeline.needs)
        key, states, trail = "", self._start, []
        for _, stage in arm.pipeline:
            key = digest([key, stage_key(stage, arm.index)])
            if key in self._prefixes:
                states = self._prefixes[key]
                self.reused += 1
            else:
                states = tuple(apply(stage, states, arm.index, self._answers))
                self._prefixes[key] = states
                self.computed += 1
            trail.append(states)
        return Outcome(arm.name, tuple(name for name, _ in arm.pipeline), tuple(trail))


_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class _Recent(MutableMapping[_K, _V]):
    """Values by key, some `limit` bytes of them: those not used for longest are dropped."""

    def __init__(self, limit: int, size: Callable[[_V], int]) -> None:
        self._limit, self._size, self._bytes = limit, size, 0
        self._kept: OrderedDict[_K, _V] = OrderedDict()

    def __contains__(self, key: object) -> bool:
        return key in self._kept

    def __getitem__(self, key: _K) -> _V:
        self._kept.move_to_end(key)
        return self._kept[key]

    def __setitem__(self, key: _K, value: _V) -> None:
        if key in self._kept:
            del self[key]
        self._kept[key] = value
        self._bytes += self._size(value)
        while self._bytes > self._limit:
            del self[next(iter(self._kept))]

    def __delitem__(self, key: _K) -> None:
        self._bytes -= self._size(self._kept.pop(key))

    def __iter__(self) -> Iterator[_K]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _bytes_of_ranking(ranking: Ranking) -> int:
    return 500 + 8 * len(ranking)


def _bytes_of_states(states: Sequence[QueryState]) -> int:
    """Roughly: a state and its containers, and the fused ranking; those of sources are the retrievers' answers."""
    return sum(1500 + 8 * len(state.fused or ()) for state in states)


def count(level: Mapping[str, Node]) -> int:
    """How many stages a tree runs."""
    return sum(1 + count(node.children) for node in level.values())


def explain(roots: Mapping[str, Node], queries: int) -> str:
    """The tree in words: what is computed once and for whom, what is reused, and what keeps equal stages apart."""
    asked: set[str] = set()
    arms = sorted({arm for node in roots.values() for arm in node.arms})
    alone = sum(_depths(node) for node in roots.values())
    lines = [f"{len(arms)} arms, {queries} queries: {count(roots)} stage runs instead of {alone}"]

    def show(node: Node, indent: int, twins: int) -> None:
        facts = [f"once for {len(node.arms)} arms"] if len(node.arms) > 1 else []
        if twins > 1:
            facts.append("apart, as it reads " + _read(node))
        if isinstance(node.stage, Retriever):
            key = stage_key(node.stage, node.index)
            facts += ["asks only what was not asked above"] if key in asked else []
            asked.add(key)
        ends = [arm for arm in node.arms if not any(arm in child.arms for child in node.children.values())]
        tail = f"  -> {', '.join(ends)}" if ends else ""
        why = f"  ({'; '.join(facts)})" if facts else ""
        lines.append(f"{'  ' * indent}{node.name}: {node.stage.describe()}{why}{tail}")
        show_level(node.children, indent + (len(node.children) > 1))

    def show_level(level: Mapping[str, Node], indent: int) -> None:
        said = Counter((node.name, node.stage.describe()) for node in level.values())
        for node in level.values():
            show(node, indent, said[node.name, node.stage.describe()])

    show_level(roots, 1)
    return "\n".join(lines)


def _read(node: Node) -> str:
    return ", ".join(f"{need} {name[:8]}" for need, name in node.index.fingerprints(node.stage.needs).items())


def _depths(node: Node) -> int:
    return len(node.arms) + sum(_depths(child) for child in node.children.values())


def artefacts_of(arms: Sequence[Arm]) -> list[Artefact]:
    """Every artefact the arms opened, each once."""
    found = {artefact.folder: artefact for arm in arms for artefact in arm.index.artefacts()}
    return list(found.values())
