"""The prefix tree of several pipelines: which stages run once, and for which arms; printed before an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragbench.base.numbers import counted
from ragbench.search.engine.executor import Arm, prefix_keys, stage_key
from ragbench.search.stages.stage import Retriever, Stage

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass
class _Node:
    """A stage in the prefix tree. `key` names the stage, all stages before it and the artefacts they read."""

    key: str
    name: str
    stage: Stage
    index: Index
    arms: list[str] = field(default_factory=list)
    children: dict[str, _Node] = field(default_factory=dict)


def tree(arms: Sequence[Arm]) -> dict[str, _Node]:
    """The roots of the tree by key. Builds only the artefacts that the names of other artefacts depend on."""
    roots: dict[str, _Node] = {}
    for arm in arms:
        level = roots
        for key, (name, stage) in zip(prefix_keys(arm), arm.pipeline, strict=True):
            node = level.setdefault(key, _Node(key, name, stage, arm.index))
            node.arms.append(arm.name)
            level = node.children
    return roots


def count(level: Mapping[str, _Node]) -> int:
    """How many stages a tree runs."""
    return sum(1 + count(node.children) for node in level.values())


def explain(roots: Mapping[str, _Node], queries: int) -> str:
    """The tree in words: what is computed once and for which arms, what is reused, why equal stages are not shared."""
    asked: set[str] = set()
    arms = sorted({arm for node in roots.values() for arm in node.arms})
    alone = sum(_count_alone(node) for node in roots.values())
    runs = count(roots)
    shared = f" instead of {alone}, because configurations share stages" if runs < alone else ""
    lines = [f"{counted(len(arms), 'arm')}, {counted(queries, 'query')}: {counted(runs, 'stage run')}{shared}"]

    def show(node: _Node, indent: int, twins: int) -> None:
        facts = [f"once for {len(node.arms)} arms"] if len(node.arms) > 1 else []
        if twins > 1:
            facts.append("not shared: it reads " + _artefacts_read(node))
        if isinstance(node.stage, Retriever):
            key = stage_key(node.stage, node.index)
            facts += ["asks only new questions"] if key in asked else []
            asked.add(key)
        ends = [arm for arm in node.arms if not any(arm in child.arms for child in node.children.values())]
        tail = f"  -> {', '.join(ends)}" if ends else ""
        why = f"  ({'; '.join(facts)})" if facts else ""
        lines.append(f"{'  ' * indent}{node.name}: {node.stage.describe()}{why}{tail}")
        show_level(node.children, indent + (len(node.children) > 1))

    def show_level(level: Mapping[str, _Node], indent: int) -> None:
        twins = Counter((node.name, node.stage.describe()) for node in level.values())
        for node in level.values():
            show(node, indent, twins[node.name, node.stage.describe()])

    show_level(roots, 1)
    return "\n".join(lines)


def _artefacts_read(node: _Node) -> str:
    return ", ".join(f"{need} {name[:8]}" for need, name in node.index.fingerprints(node.stage.needs).items())


def _count_alone(node: _Node) -> int:
    return len(node.arms) + sum(_count_alone(child) for child in node.children.values())
