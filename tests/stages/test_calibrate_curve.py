"""Isotonic calibration: curves by hand; fitting them is tested with ragbench.extras.fit.calibrate."""

import pytest

from ragbench.config import composition
from ragbench.search.stages.calibrate import CalibrateByCurve

X, Y = (0.01, 0.02, 0.04), (0.0, 0.2, 1.0)


def test_calibration_curve_is_straight_between_points_and_flat_outside(state) -> None:
    hits = [(4, 0.05), (3, 0.03), (2, 0.02), (1, 0.015), (0, 0.001)]
    (after,) = CalibrateByCurve(X, Y)([state(fused=hits)], None)
    assert after.fused.chunks.tolist() == [4, 3, 2, 1, 0]
    assert after.fused.scores.tolist() == pytest.approx([1.0, 0.6, 0.2, 0.1, 0.0])


def test_calibration_table_is_that_of_seed_001() -> None:
    table = dict(composition.compose(["calibration=table"]).pipeline)["calibration"]
    points = dict(zip(table.x, table.y, strict=True))
    assert points == {0.0: 0.0, 0.02: 0.3, 0.03: 0.5, 0.038: 0.7, 0.05: 0.9, 0.056: 0.98}
