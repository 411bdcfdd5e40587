"""From a composed configuration (plain mappings) to objects: pipeline, index specification, ways to measure.

Every node becomes a dataclass: the class that `_target_` names, or for a section of config.yaml the one in
`ragbench.configuration.sections`. The whole is checked before anything is built (`ragbench.configuration.schema`), so
that a wrong configuration gives one sentence and not half of a run.
"""

from ragbench.configuration.build import REPLACES, active, build, make
from ragbench.configuration.sections import BudgetSpec, ExecutionSpec, LatencySpec, StatisticsSpec, TuneSpec
from ragbench.configuration.settings import Settings

__all__ = [
    "REPLACES",
    "BudgetSpec",
    "ExecutionSpec",
    "LatencySpec",
    "Settings",
    "StatisticsSpec",
    "TuneSpec",
    "active",
    "build",
    "make",
]
