"""From a composed configuration (plain mappings) to values: pipeline, index specification, measuring.

Every node becomes a dataclass: one with `_target_` that which it names, a section of config.yaml that of
`ragbench.configuration.sections`. The whole is checked before anything is built (`ragbench.configuration.schema`), so
that a wrong configuration is one sentence and not a half-done run.
"""

from ragbench.configuration.build import REPLACES, active, build, make
from ragbench.configuration.sections import SPLITS, BudgetSpec, ExecutionSpec, LatencySpec, StatisticsSpec, TuneSpec
from ragbench.configuration.settings import Settings

__all__ = [
    "REPLACES",
    "SPLITS",
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
