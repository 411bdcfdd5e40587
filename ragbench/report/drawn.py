"""A Plotly figure with a PNG, which is shown where no JavaScript runs (other editors, GitHub, mail).

Matplotlib draws it from the traces of the figure: markers and lines with their intervals, bars, heat maps.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import unescape
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from ragbench.report.canvas import BLUE, GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PNG = "image/png"
_INCH = 100.0  # pixels of a figure's height
_SHAPES = {"diamond": "D", "square": "s", "circle": "o", "x": "X"}
_DASHES = {"dot": ":", "dash": "--"}
_INK = "#444444"


class Drawn(go.Figure):  # type: ignore[misc]  # plotly has no types
    """A Plotly figure with a PNG of it."""

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {**super()._repr_mimebundle_(*args, **kwargs), _PNG: png(self)}

    def picture(self) -> bytes:
        """The figure as PNG."""
        return png(self)


def png(figure: go.Figure) -> bytes:
    """A figure as PNG, the same bytes for the same figure."""
    from matplotlib.figure import Figure

    layout = figure.layout
    drawn = Figure(figsize=(8.0, max(2.4, float(layout.height or 400) / _INCH)), dpi=100, layout="constrained")
    axes = drawn.add_subplot()
    rows = [unescape(str(name)) for name in (layout.yaxis.categoryarray or ())]
    left: dict[str, float] = {}
    for trace in figure.data:
        if trace.type == "bar":
            _bars(axes, trace, rows, left)
        elif trace.type == "heatmap":
            _cells(axes, trace)
        else:
            _points(axes, trace, rows)
    if rows:
        axes.set_yticks(range(len(rows)), rows)
    for shape in layout.shapes or ():
        if shape.x0 == shape.x1:
            axes.axvline(float(shape.x0), color=GREY, linestyle=":", linewidth=1)
    if layout.xaxis.type == "log":
        axes.set_xscale("log")
        if layout.xaxis.tickvals:
            axes.set_xticks(list(layout.xaxis.tickvals), list(layout.xaxis.ticktext))
            axes.minorticks_off()
    axes.set_xlabel(layout.xaxis.title.text or "", color=_INK)
    axes.set_ylabel(layout.yaxis.title.text or "", color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    if sum(trace.showlegend is not False and bool(trace.name) for trace in figure.data) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8)
    written = io.BytesIO()
    drawn.savefig(written, format="png", metadata={"Software": "ragbench"})
    return written.getvalue()


def _points(axes: Axes, trace: Any, rows: list[str]) -> None:
    xs, ys = list(trace.x), [rows.index(unescape(y)) if isinstance(y, str) else y for y in trace.y]
    if "markers" not in (trace.mode or ""):
        steps: Any = "steps-post" if trace.line.shape == "hv" else "default"
        style = _DASHES.get(trace.line.dash, "-")
        axes.plot(xs, ys, color=trace.line.color or BLUE, linestyle=style, label=trace.name, drawstyle=steps)
        return
    colors = trace.marker.color
    each = list(colors) if isinstance(colors, (list, tuple)) else [colors or BLUE] * len(xs)
    for place, (x, y, color) in enumerate(zip(xs, ys, each, strict=True)):
        axes.errorbar(
            x,
            y,
            xerr=_reach(trace.error_x, place),
            yerr=_reach(trace.error_y, place),
            fmt=_SHAPES.get(trace.marker.symbol, "o"),
            color=color,
            capsize=2,
            linewidth=1,
            label=trace.name if place == 0 else None,
        )
    for x, y, text in zip(xs, ys, trace.text or (), strict=False):
        axes.annotate(unescape(str(text)), (x, y), (0, 7), textcoords="offset points", ha="center", parse_math=False)


def _reach(error: Any, place: int) -> Sequence[Sequence[float]] | None:
    if error is None or error.array is None:
        return None
    less = error.arrayminus if error.arrayminus is not None else error.array
    return [[max(0.0, float(less[place]))], [max(0.0, float(error.array[place]))]]


def _bars(axes: Axes, trace: Any, rows: list[str], left: dict[str, float]) -> None:
    color = trace.marker.color or BLUE
    hatch = (trace.marker.pattern.shape if trace.marker.pattern else None) or None
    for place, (x, y) in enumerate(zip(trace.x, trace.y, strict=True)):
        name = unescape(str(y))
        label = trace.name if place == 0 else None
        axes.barh(rows.index(name), x, left=left.get(name, 0.0), color=color, hatch=hatch, label=label, height=0.7)
        left[name] = left.get(name, 0.0) + float(x)


def _cells(axes: Axes, trace: Any) -> None:
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("trace", [tuple(each) for each in trace.colorscale])
    values = np.array([[np.nan if cell is None else cell for cell in row] for row in trace.z], dtype=np.float64)
    axes.imshow(values, cmap=colors, vmin=trace.zmin, vmax=trace.zmax, aspect="auto")
    axes.set_xticks(range(len(trace.x)), [unescape(str(name)) for name in trace.x])
    axes.set_yticks(range(len(trace.y)), [unescape(str(name)) for name in trace.y])
    for i, row in enumerate(trace.text):
        for j, text in enumerate(row):
            axes.text(j, i, text, ha="center", va="center", fontsize=8)
