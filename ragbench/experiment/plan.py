"""Describe what an experiment would do, and how long it takes here: nothing is indexed, searched, measured or kept."""

from __future__ import annotations

from collections.abc import Sequence

from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.arm_builder import ArmBuilder
from ragbench.config.settings import Settings
from ragbench.experiment.forecast import Forecast, forecast
from ragbench.experiment.run import arm_key, plan
from ragbench.index.artefacts import Survey
from ragbench.results import store
from ragbench.search.engine.executor import Arm
from ragbench.search.engine.tree import explain as explain_tree
from ragbench.search.engine.tree import tree


def explain(settings: Sequence[Settings], benchmark: Benchmark, command: str) -> str:
    """The prefix tree of the arms, the artefacts to build and to reuse, the finished arms, and what is timed.

    `command` is the one that would run it: only the same command continues a stopped experiment.
    """
    shared = settings[0]
    builder = ArmBuilder(benchmark, Survey(shared.index_folder), shared.models())
    planned = plan(settings, command, builder)
    arms = [arm for _, arm in planned.arms.values()]
    stopped = store.stopped(shared.results, planned.digest)
    finished = [arm.name for arm in arms if stopped is not None and store.finished(stopped, arm.name, arm_key(arm))]
    remaining = [arm for arm in arms if arm.name not in finished]
    queries = len(planned.topics)
    lines = [explain_tree(tree(remaining), queries)] if remaining else []
    if finished:
        lines.append(f"finished already, read from {stopped}: {', '.join(finished)}")
    lines += _artefacts(arms)
    lines.append(f"embeddings and re-ranking scores computed before are found in {shared.cache_folder}")
    lines.append(forecast(remaining, planned.queries, shared.latency).sentence)
    spec = shared.latency
    if spec.enabled:
        sampled = min(spec.queries, queries)
        lines.append(f"then every arm is timed: {sampled} queries x {spec.rounds}, after {spec.warmup} to warm up")
        lines += ["and starts cold in a fresh process"] if spec.cold_start else []
        lines += [f"and is sent {spec.arrivals} queries at {rate:g} a second" for rate in spec.rates]
    return "\n".join(lines)


def expected(settings: Sequence[Settings], benchmark: Benchmark, command: str) -> Forecast:
    """How long a run of the settings will take here; the models are tried for some seconds."""
    shared = settings[0]
    builder = ArmBuilder(benchmark, Survey(shared.index_folder), shared.models())
    planned = plan(settings, command, builder)
    return forecast([arm for _, arm in planned.arms.values()], planned.queries, shared.latency)


def _artefacts(arms: Sequence[Arm]) -> list[str]:
    """A line for every artefact: whether it is found or must be built, and which arms read it."""
    readers: dict[tuple[str, str], list[str]] = {}
    missing: dict[tuple[str, str], bool] = {}
    for arm in arms:
        for artefact in arm.index.artefacts(arm.pipeline.needs):
            key = artefact.kind, artefact.fingerprint
            readers.setdefault(key, []).append(arm.name)
            missing[key] = artefact.built
    lines = [f"{len(missing)} artefacts, {sum(missing.values())} to build"]
    for key, names in sorted(readers.items()):
        who = "all arms" if len(names) == len(arms) else ", ".join(names)
        lines.append(f"  {key[0]} {key[1]}: {'to build' if missing[key] else 'found'}, for {who}")
    return lines
