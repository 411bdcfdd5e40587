"""What is loaded into an engine that lacks the measured fusion."""

from __future__ import annotations

from ragbench.config import composition
from ragbench.extras.engines import opened, plan
from ragbench.search.stages.fuse import Fuse


def test_nearest_fusion_keeps_the_weights() -> None:
    settings = composition.compose(["exp=baseline", "fuse.method=dbsf", "fuse.weights={dense: 2.0}"])
    nearest, note = opened._nearest_fusion(plan.without_ranker(settings))
    assert plan.fusion_of(nearest) == "convex/min_max"
    assert next(stage for _, stage in nearest.pipeline if isinstance(stage, Fuse)).weights["dense"] == 2.0
    assert "min_max" in note
