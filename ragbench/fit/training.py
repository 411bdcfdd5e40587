"""What every fit begins with: a pipeline cut where the fit comes, and its answers to training topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ragbench.config.arm_builder import ArmBuilder, Progress, Say
from ragbench.search.engine import executor
from ragbench.search.engine.executor import Arm
from ragbench.search.engine.pipeline import Pipeline

if TYPE_CHECKING:
    from ragbench.base.types import QueryState
    from ragbench.benchmark.benchmark import Benchmark, Topic
    from ragbench.config.settings import Settings
    from ragbench.search.stages.stage import Stage

Stages = Sequence[tuple[str, "Stage"]]


def cut(
    settings: Settings, benchmark: Benchmark, stages: Stages, progress: Progress | None = None, say: Say = print
) -> Arm:
    """The arm of the settings with these of its stages; indexes that are missing are built."""
    (whole,) = ArmBuilder.of(settings, benchmark, progress, say).arms([settings])
    return Arm(whole.name, Pipeline(tuple(stages)), whole.index)


def answers(arm: Arm, topics: Iterable[Topic], progress: Progress | None = None) -> Sequence[QueryState]:
    """The states of the topics after the last stage of the arm."""
    (outcome,) = executor.execute([arm], [topic.query() for topic in topics], progress)
    return outcome.final
