"""Place the names of points in a scatter plot so that they can be read: greedily, each next to its point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_CHARACTER, _LINE, _GAP, _POINT = 7.2, 15.0, 9.0, 7.0  # pixels: width and height of text, distance, radius of a marker


class Box(NamedTuple):
    """A rectangle in pixels, y growing upwards."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """The area that both share."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, width) * max(0.0, height)


# Plotly's names of positions, in the order they are tried: the text's centre, in half widths and lines from the point.
_POSITIONS = {
    "middle right": (1, 0),
    "middle left": (-1, 0),
    "top center": (0, 1),
    "bottom center": (0, -1),
    "top right": (1, 1),
    "bottom right": (1, -1),
    "top left": (-1, 1),
    "bottom left": (-1, -1),
}


def positions(
    points: Sequence[tuple[float, float]], names: Sequence[str], frame: Box, obstacles: Sequence[Box] = ()
) -> list[str]:
    """A position for the name of each point (pixels), inside `frame` and with the least overlap with other things."""
    markers = [Box(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]
    taken: list[Box] = []
    chosen = []
    for place, (point, name) in enumerate(zip(points, names, strict=True)):
        others = [marker for at, marker in enumerate(markers) if at != place] + [*obstacles, *taken]
        costs = {}
        for position in _POSITIONS:
            box = _box(point, name, position)
            outside = (box.right - box.left) * (box.top - box.bottom) - box.overlap(frame)
            costs[position] = outside + sum(box.overlap(other) for other in others)
        best = min(costs, key=lambda position: costs[position])
        taken.append(_box(point, name, best))
        chosen.append(best)
    return chosen


def _box(point: tuple[float, float], name: str, position: str) -> Box:
    half = len(name) * _CHARACTER / 2
    across, up = _POSITIONS[position]
    x = point[0] + across * (half + (_GAP if up == 0 else 0))
    y = point[1] + up * (_LINE / 2 + _GAP)
    return Box(x - half, y - _LINE / 2, x + half, y + _LINE / 2)
