"""Sigmoid calibration, with the worked examples of seed 001."""

import numpy as np
import pytest

from ragbench.base.rankings import Ranking
from ragbench.search.stages.calibrate import Calibrate


@pytest.mark.parametrize(
    ("score", "confidence"),
    # 1 / (1 + exp(-150 (score - 0.035))); seed 001 rounds 0.407 up to 0.42.
    [(0.035, 0.5), (0.0325, 0.4073), (0.0323, 0.4), (0.0175, 0.0676), (0.0161, 0.0554), (0.0082, 0.0176)],
)
def test_calibrate_by_hand(score: float, confidence: float) -> None:
    (value,) = Calibrate().calibrate(Ranking.ordered([3], [score])).scores
    assert value == pytest.approx(confidence, abs=2e-4)


def test_calibrate_keeps_order_and_stays_between_0_and_1() -> None:
    ranking = Ranking.ordered([5, 2, 9, 1], [1e9, 0.05, 0.0, -1e9])
    calibrated = Calibrate().calibrate(ranking)
    assert calibrated.chunks.tolist() == [5, 2, 9, 1]
    assert np.all((calibrated.scores >= 0) & (calibrated.scores <= 1))
    assert np.all(np.diff(calibrated.scores) <= 0)
