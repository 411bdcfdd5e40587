"""Forest plots as SVG: effects with their intervals, without scripts, the same bytes for the same numbers."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from ragbench.report.canvas import BLUE, GREY

_INK = "#444444"
_ROW = 0.21  # inches
_WIDTH = 7.2


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
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Text stays text, and the file does not depend on the time or on random ids.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ragbench", "font.family": "sans-serif"}):
        figure = Figure(figsize=(_WIDTH, 0.9 + _ROW * len(lines)), layout="constrained")
        axes = figure.add_subplot()
        axes.axvline(0.0, color=GREY, linewidth=1)
        for place, line in enumerate(lines):
            if line.predicted:
                axes.plot(line.predicted, (place, place), color=GREY, linewidth=1, solid_capstyle="butt")
            axes.plot((line.low, line.high), (place, place), color=BLUE, linewidth=2.5, solid_capstyle="butt")
            axes.plot(line.effect, place, "D", color=BLUE, markersize=line.size)
        axes.set_yticks(range(len(lines)), [line.name for line in lines], fontsize=8, parse_math=False)
        axes.invert_yaxis()
        axes.set_title(title, fontsize=9, color=_INK, loc="left")
        axes.tick_params(colors=_INK)
        axes.grid(axis="x", color="#eeeeee")
        axes.set_axisbelow(True)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"
