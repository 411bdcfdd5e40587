"""Quality: run many pipelines over many queries, doing shared work once.

Pipelines form a prefix tree of stage values: a stage that follows the same stages over the same artefacts runs once,
whatever the pipelines are called. Below the tree, a retriever answers each distinct question once, so that a change of
a fusion weight, or of a classification before it, does not search again. The results equal those of each alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragbench.fingerprint import digest
from ragbench.index.index import Index
from ragbench.pipeline import Pipeline, start
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


def plan(arms: Sequence[Arm]) -> dict[str, Node]:
    """The prefix tree of the arms: its roots by key. Opens (and builds) the artefacts the arms need."""
    roots: dict[str, Node] = {}
    for arm in arms:
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
    answers: dict[tuple[str, Hashable], Ranking],
) -> list[QueryState]:
    """Run a stage, answering a retriever's questions from `answers` where they have been asked before."""
    if not isinstance(stage, Retriever):
        return stage(states, index)
    key = stage_key(stage, index)
    asked = [(key, stage.question(state)) for state in states]
    new: dict[tuple[str, Hashable], QueryState] = {
        question: state for question, state in zip(asked, states, strict=True) if question not in answers
    }
    if new:
        answers.update(zip(new, stage.retrieve(list(new.values()), index), strict=True))
    return [state.with_ranking(stage.source, answers[question]) for question, state in zip(asked, states, strict=True)]


def count(level: Mapping[str, Node]) -> int:
    """How many stages a tree runs."""
    return sum(1 + count(node.children) for node in level.values())


def explain(roots: Mapping[str, Node], queries: int) -> str:
    """The tree in words: what is computed once and for whom."""
    arms = sorted({arm for node in roots.values() for arm in node.arms})
    alone = sum(_depths(node) for node in roots.values())
    lines = [f"{len(arms)} arms, {queries} queries: {count(roots)} stage runs instead of {alone}"]

    def show(node: Node, indent: int) -> None:
        shared = "" if len(node.arms) == 1 else f"  (shared by {len(node.arms)} arms)"
        ends = [arm for arm in node.arms if not any(arm in child.arms for child in node.children.values())]
        tail = f"  -> {', '.join(ends)}" if ends else ""
        lines.append(f"{'  ' * indent}{node.name}: {node.stage.describe()}{shared}{tail}")
        for child in node.children.values():
            show(child, indent + (len(node.children) > 1))

    for root in roots.values():
        show(root, 1)
    return "\n".join(lines)


def _depths(node: Node) -> int:
    return len(node.arms) + sum(_depths(child) for child in node.children.values())


def artefacts_of(arms: Sequence[Arm]) -> list[Artefact]:
    """Every artefact the arms opened, each once."""
    found = {artefact.folder: artefact for arm in arms for artefact in arm.index.artefacts()}
    return list(found.values())
