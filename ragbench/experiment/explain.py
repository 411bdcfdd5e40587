"""What a run would do, in words: the stages that arms share, artefacts to build and to reuse, and what is timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragbench.base.formatting import counted
from ragbench.experiment.plan import Plan, PlannedArm
from ragbench.results import store
from ragbench.search.engine.executor import Arm, prefix_keys, stage_key
from ragbench.search.stages.stage import Retriever


def explain(plan: Plan) -> str:
    """The prefix tree of the arms, the artefacts to build and to reuse, the finished arms, and what is timed.

    The command of the plan is the one that would run it: only the same command continues a stopped experiment.
    """
    arms = list(plan.arms.values())
    stopped = store.stopped(plan.results, plan.digest)
    finished = [arm.name for arm in arms if stopped is not None and store.finished(stopped, arm.name, arm.key)]
    remaining = replace(plan, arms={arm.name: arm for arm in arms if arm.name not in finished})
    queries, spec = len(plan.queries), plan.latency
    lines = _tree(list(remaining.arms.values()), queries) if remaining.arms else []
    if finished:
        lines.append(f"finished already, read from {stopped}: {', '.join(finished)}")
    lines += _artefacts(arms)
    lines.append(f"reusing embeddings and re-ranking scores cached in {arms[0].index.models.cache}")
    if spec.enabled:
        sampled = min(spec.queries, queries)
        lines.append(f"then each arm is timed: {sampled} queries x {spec.rounds}, after {spec.warmup} warm-up queries")
        lines += ["and then from a cold start in a new process"] if spec.cold_start else []
    return "\n".join(lines)


def _artefacts(arms: Sequence[PlannedArm]) -> list[str]:
    """A line for every artefact: whether it is found or must be built, and which arms read it."""
    readers: dict[tuple[str, str, bool], list[str]] = {}
    for arm in arms:
        for artefact in arm.artefacts:
            readers.setdefault((artefact.kind, artefact.fingerprint, artefact.built), []).append(arm.name)
    lines = [f"{len(readers)} artefacts, {sum(missing for _, _, missing in readers)} to build"]
    for (kind, fingerprint, missing), names in sorted(readers.items()):
        owners = "all arms" if len(names) == len(arms) else ", ".join(names)
        lines.append(f"  {kind} {fingerprint}: {'to build' if missing else 'found'}, for {owners}")
    return lines


def _tree(arms: Sequence[Arm], queries: int) -> list[str]:
    """The prefix tree of the arms: what is computed once and for which of them.

    Builds only the artefacts that the names of other artefacts depend on.
    """
    keyed = [(arm, prefix_keys(arm)) for arm in arms]
    alone, runs = sum(len(keys) for _, keys in keyed), len({key for _, keys in keyed for key in keys})
    shared = f" instead of {alone}, because configurations share stages" if runs < alone else ""
    total = f"{counted(len(arms), 'arm')}, {counted(queries, 'query')}: {counted(runs, 'stage run')}{shared}"
    return [total, *_branches(keyed, 0, 1, set())]


def _branches(arms: Sequence[tuple[Arm, list[str]]], depth: int, indent: int, asked: set[str]) -> Iterator[str]:
    """A line for each different stage after the first `depth` of arms that share these, each before its own branches.

    It tells what is reused, and why equal stages are not shared; `asked` are the keys of the retrievers so far.
    """
    branches: dict[str, list[tuple[Arm, list[str]]]] = {}
    for arm, keys in arms:
        if len(keys) > depth:
            branches.setdefault(keys[depth], []).append((arm, keys))
    firsts = [branch[0][0] for branch in branches.values()]
    labels = [f"{name}: {stage.describe()}" for name, stage in (arm.pipeline.stages[depth] for arm in firsts)]
    indent += depth > 0 and len(branches) > 1
    for first, label, branch in zip(firsts, labels, branches.values(), strict=True):
        stage = first.pipeline.stages[depth][1]
        facts = [f"once for {len(branch)} arms"] if len(branch) > 1 else []
        if labels.count(label) > 1:
            read = first.index.fingerprints(stage.needs)
            facts.append("not shared: it reads " + ", ".join(f"{need} {name[:8]}" for need, name in read.items()))
        if isinstance(stage, Retriever):
            key = stage_key(stage, first.index)
            facts += ["asks only new questions"] if key in asked else []
            asked.add(key)
        ends = [arm.name for arm, keys in branch if len(keys) == depth + 1]
        reason = f"  ({'; '.join(facts)})" if facts else ""
        tail = f"  -> {', '.join(ends)}" if ends else ""
        yield f"{'  ' * indent}{label}{reason}{tail}"
        yield from _branches(branch, depth + 1, indent, asked)
