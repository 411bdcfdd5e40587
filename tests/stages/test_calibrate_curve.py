"""Isotonic calibration: curves by hand; fitting them is tested with ragbench.extras.fit.calibrate."""

import pytest

from ragbench.base.errors import ConfigError
from ragbench.base.types import Ranking
from ragbench.search.stages.calibrate import CalibrateByCurve

X, Y = (0.01, 0.02, 0.04), (0.0, 0.2, 1.0)


def test_straight_between_the_points_and_flat_outside(state) -> None:
    hits = [(4, 0.05), (3, 0.03), (2, 0.02), (1, 0.015), (0, 0.001)]
    (after,) = CalibrateByCurve(X, Y)([state(fused=hits)], None)
    assert after.fused.chunks.tolist() == [4, 3, 2, 1, 0]
    assert after.fused.scores.tolist() == pytest.approx([1.0, 0.6, 0.2, 0.1, 0.0])


@pytest.mark.parametrize(("best", "factor"), [(0.9, 0.8), (0.75, 0.5), (0.6, 0.2), (0.1, 0.2)])
def test_the_best_score_of_a_source_says_whether_there_is_an_answer(state, best: float, factor: float) -> None:
    stage = CalibrateByCurve(X, Y, best_of="dense", best_x=(0.6, 0.9), best_y=(0.2, 0.8))
    given = state(fused=[(1, 0.04), (0, 0.02)]).with_ranking("dense", Ranking.ordered([7, 8], [best, 0.05]))
    (after,) = stage([given], None)
    assert after.fused.scores.tolist() == pytest.approx([factor, 0.2 * factor])


def test_a_source_that_found_nothing_is_the_worst_sign(state) -> None:
    stage = CalibrateByCurve(X, Y, best_of="dense", best_x=(0.6, 0.9), best_y=(0.2, 0.8))
    (after,) = stage([state(fused=[(1, 0.04)], dense=[])], None)
    assert after.fused.scores.tolist() == pytest.approx([0.2])


def test_a_source_that_is_not_searched_is_named(state) -> None:
    stage = CalibrateByCurve(X, Y, best_of="dense", best_x=(0.6,), best_y=(0.2,))
    with pytest.raises(
        ConfigError, match=r"calibration\.best_of names the source 'dense'.*name one of lexical or null"
    ):
        stage([state(fused=[(1, 0.04)], lexical=[1])], None)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"x": (), "y": ()}, r"x and y must hold the same number of points.*`ragbench fit calibration`"),
        ({"x": (1.0,), "y": (0.1, 0.2)}, r"got 1 and 2"),
        ({"x": (1.0, 1.0), "y": (0.1, 0.2)}, r"x must increase"),
        ({"x": (float("nan"),), "y": (0.1,)}, r"x\[0\] must be finite"),
        ({"x": (1.0, 2.0), "y": (0.2, 0.1)}, r"y must never decrease"),
        ({"x": (1.0, 2.0), "y": (0.2, 1.1)}, r"y\[1\] must be between 0 and 1"),
        ({"x": (1.0,), "y": (float("nan"),)}, r"y\[0\] must be between 0 and 1"),
        ({"x": (1.0,), "y": (0.5,), "best_of": "dense"}, r"best_x and best_y must hold"),
    ],
)
def test_bad_curves_are_named(parameters: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        CalibrateByCurve(**parameters)
