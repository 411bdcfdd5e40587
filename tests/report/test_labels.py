"""Names keep off each other, off markers and inside the frame."""

from hypothesis import given
from hypothesis import strategies as st

from ragbench.report.pareto import _Box, _positions

FRAME = _Box(0, 0, 1000, 330)


def test_labels_lone_point_has_its_name_to_the_right() -> None:
    assert _positions([(500, 100)], ["baseline"], FRAME) == ["middle right"]


def test_labels_at_the_right_edge_the_name_goes_left() -> None:
    assert _positions([(995, 100)], ["baseline"], FRAME) == ["middle left"]


def test_labels_neighbour_and_a_bar_push_the_name_away() -> None:
    assert _positions([(500, 100), (540, 100)], ["left", "right"], FRAME)[0] == "middle left"
    bar = _Box(300, 97, 700, 103)
    assert _positions([(500, 100)], ["name"], FRAME, [bar]) == ["top center"]


def test_labels_areas_that_boxes_share() -> None:
    assert _Box(0, 0, 10, 10).overlap(_Box(5, 8, 20, 20)) == 5 * 2
    assert _Box(0, 0, 10, 10).overlap(_Box(10, 0, 20, 10)) == 0


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 330)), max_size=20))
def test_labels_every_point_gets_one_and_always_the_same(points: list[tuple[float, float]]) -> None:
    names = [f"arm {n}" for n in range(len(points))]
    result = _positions(points, names, FRAME)
    assert len(result) == len(points)
    assert result == _positions(points, names, FRAME)
