"""ragbench: find out which retrieval ideas improve search over your markdown documentation, by how much, at what cost.

from ragbench import Experiment

results = Experiment.sweep("exp=baseline,phase1").run()
results.verdicts

import ragbench

for hit in ragbench.load("bundle").search("how do I rotate a key"):
    print(hit.docno, hit.header_path, hit.score)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragbench.base.query_cache import remember as remember
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.benchmark.load import load_benchmark
    from ragbench.benchmark.native import save_benchmark
    from ragbench.evaluation.measures import measure
    from ragbench.extras.fit.tuning.report import Tuning as Tuning
    from ragbench.extras.fit.workbench import tune
    from ragbench.extras.remote.live.objects import retriever
    from ragbench.extras.ship.deployment import load
    from ragbench.extras.tracking.metrics import mlflow_metrics
    from ragbench.models.functions import encoder, reranker
    from ragbench.search.function_stage import stage
    from ragbench.workbench import Experiment, Results
    from ragbench.workbench.composed import pipeline
    from ragbench.workbench.runs import evaluate

# Libraries report their use to their makers as soon as they are imported or started.
for _name in ("ORT_DISABLE_TELEMETRY", "MLFLOW_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
    os.environ.setdefault(_name, "1")

__all__ = [
    "Benchmark",
    "Experiment",
    "Results",
    "configuration",
    "encoder",
    "evaluate",
    "load",
    "load_benchmark",
    "measure",
]
__all__ += ["mlflow_metrics", "pipeline", "reranker", "retriever", "save_benchmark", "stage", "tune"]


def __getattr__(name: str) -> Any:
    from ragbench.base import registry

    if name in registry.entries("api"):  # when first asked for: importing the package must stay cheap
        return registry.find("api", name)
    raise AttributeError(f"module 'ragbench' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
