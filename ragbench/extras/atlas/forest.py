"""Forest plots as SVG: effects with their intervals, without scripts, the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragbench.extras.atlas.picture import GRID, Scale, document, line, mark, text
from ragbench.report.figure_style import BLUE, GREY

_ROW, _TOP = 20.0, 28.0  # pixels


@dataclass(frozen=True)
class Line:
    """A row: the effect, its interval, and optionally the wider one of a prediction; `size` is that of the mark."""

    name: str
    effect: float
    low: float
    high: float
    predicted: tuple[float, float] | None = None
    size: float = 5.0


def svg(lines: Sequence[Line], title: str) -> str:
    """Rows from top to bottom around a line at 0; the interval is thick, the prediction thin."""
    ends = [0.0, *(end for row in lines for end in (row.low, row.high, *(row.predicted or ())))]
    margin = 0.05 * (max(ends) - min(ends))
    x = Scale(min(ends) - margin, max(ends) + margin, 20 + 6.5 * max((len(row.name) for row in lines), default=0), 700)
    bottom = _TOP + _ROW * len(lines)
    shapes = [text(12, 18, title, "start")]
    for tick in x.ticks():
        shapes += [line(x(tick), _TOP, x(tick), bottom, GRID), text(x(tick), bottom + 18, f"{tick:.3g}")]
    shapes.append(line(x(0.0), _TOP, x(0.0), bottom, GREY))
    for number, row in enumerate(lines):
        y = _TOP + _ROW * (number + 0.5)
        shapes.append(text(x.start - 8, y + 4, row.name, "end"))
        if row.predicted:
            shapes.append(line(x(row.predicted[0]), y, x(row.predicted[1]), y, GREY))
        shapes += [line(x(row.low), y, x(row.high), y, BLUE, 3), mark(x(row.effect), y, row.size, BLUE)]
    return document(bottom + 28, shapes)
