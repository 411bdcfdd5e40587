"""The arm that ends where a learned order comes, and what can be learned from its hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ragbench.base.build import SOURCES
from ragbench.base.errors import ConfigError
from ragbench.config.arm_builder import Say
from ragbench.extras.fit import ranker, training
from ragbench.extras.fit.ranker import Sample
from ragbench.search.engine.executor import Arm
from ragbench.search.ranking import features
from ragbench.search.stages.stage import StateProperty

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.config.settings import Settings

STAGE = "ranker"
"""The entry of `order` where a learned order has its place."""


def arm(settings: Settings, benchmark: Benchmark, say: Say = print) -> Arm:
    """The arm with the stages before the place of `ranker`. ConfigError where that has no place or nothing is fused."""
    order = [str(entry) for entry in settings.config["order"]]
    if STAGE not in order:
        raise ConfigError("`order` has no entry 'ranker', where a trained ranker runs: add one after 'fuse'")
    earlier = {*order[: order.index(STAGE)]}
    stages = tuple(
        (name, stage)
        for name, stage in settings.pipeline.stages
        if name in earlier or (name.startswith(f"{SOURCES}.") and SOURCES in earlier)
    )
    if not any(StateProperty.FUSED in stage.provides for _, stage in stages):
        raise ConfigError("this pipeline fuses nothing before 'ranker', so it has no ranking to start from")
    truncated = training.cut(settings, benchmark, stages, say)
    truncated.index.prepare({"terms"})
    return truncated


def sample(
    arm: Arm,
    benchmark: Benchmark,
    split: str,
    depth: int,
    select_features: Callable[[Sequence[str]], tuple[str, ...]] = features.names,
) -> Sample:
    """What can be learned from the topics of a split, as `ranker.sample` says."""
    states = training.answers(arm, benchmark.select(split))
    return ranker.sample(states, arm.index, benchmark, depth, select_features)
