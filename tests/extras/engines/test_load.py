"""What is loaded into an engine that lacks the measured fusion."""

from __future__ import annotations

from ragbench.export import measured_arm
from ragbench.export.replay import Bench
from ragbench.extras.engines import load, plan
from ragbench.search.stages.fuse import Fuse


def test_the_nearest_fusion(finished) -> None:
    """Without train topics the weights stay; the method is one of those that the engine has."""
    bench = Bench.of(measured_arm.find(finished.folder, "baseline"))
    settings = bench.measured.settings.with_values({"fuse.method": "dbsf", "fuse.weights": {"dense": 2.0}})
    nearest, said = load._nearest_fusion(bench, plan.without_ranker(settings), [Fuse("convex"), Fuse("rrf")])
    assert plan.fusion_of(nearest) == "convex/min_max"
    assert next(stage for _, stage in nearest.pipeline if isinstance(stage, Fuse)).weights == {"dense": 2.0}
    assert "no train topics" in said
