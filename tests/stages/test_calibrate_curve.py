"""Isotonic calibration: curves by hand; fitting them is tested with ragbench.extras.fit.calibrate."""

import pytest

from ragbench.base.errors import ConfigError
from ragbench.base.types import Ranking
from ragbench.search.stages.calibrate import CalibrateByCurve
from tests.naming import naming

X, Y = (0.01, 0.02, 0.04), (0.0, 0.2, 1.0)


def test_calibration_curve_is_straight_between_points_and_flat_outside(state) -> None:
    hits = [(4, 0.05), (3, 0.03), (2, 0.02), (1, 0.015), (0, 0.001)]
    (after,) = CalibrateByCurve(X, Y)([state(fused=hits)], None)
    assert after.fused.chunks.tolist() == [4, 3, 2, 1, 0]
    assert after.fused.scores.tolist() == pytest.approx([1.0, 0.6, 0.2, 0.1, 0.0])


@pytest.mark.parametrize(("best", "factor"), [(0.9, 0.8), (0.75, 0.5), (0.6, 0.2), (0.1, 0.2)])
def test_calibration_curve_reads_the_best_score_of_a_source(state, best: float, factor: float) -> None:
    stage = CalibrateByCurve(X, Y, best_of="dense", best_x=(0.6, 0.9), best_y=(0.2, 0.8))
    given = state(fused=[(1, 0.04), (0, 0.02)]).with_ranking("dense", Ranking.ordered([7, 8], [best, 0.05]))
    (after,) = stage([given], None)
    assert after.fused.scores.tolist() == pytest.approx([factor, 0.2 * factor])


def test_calibration_curve_of_a_source_without_hits_is_lowest(state) -> None:
    stage = CalibrateByCurve(X, Y, best_of="dense", best_x=(0.6, 0.9), best_y=(0.2, 0.8))
    (after,) = stage([state(fused=[(1, 0.04)], dense=[])], None)
    assert after.fused.scores.tolist() == pytest.approx([0.2])


def test_calibration_curve_names_a_source_that_is_not_searched(state) -> None:
    stage = CalibrateByCurve(X, Y, best_of="dense", best_x=(0.6,), best_y=(0.2,))
    with pytest.raises(ConfigError, check=naming("calibration.best_of", "'dense'", "lexical")):
        stage([state(fused=[(1, 0.04)], lexical=[1])], None)
