"""Quality against time, and the configurations that no other one beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragbench.evidence import t_statistic
from ragbench.report.figures import GREY, arm_colors, error_bars, finish, labels

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from ragbench.results.measurements import Measurements

_CHARACTER, _LINE, _GAP, _POINT = 7.2, 15.0, 9.0, 7.0  # pixels: width and height of text, distance, radius of a marker


class _Box(NamedTuple):
    """A rectangle in pixels, y growing upwards."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, second: _Box) -> float:
        """The area that both share."""
        width = min(self.right, second.right) - max(self.left, second.left)
        height = min(self.top, second.top) - max(self.bottom, second.bottom)
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


def _positions(
    points: Sequence[tuple[float, float]], names: Sequence[str], frame: _Box, obstacles: Sequence[_Box] = ()
) -> list[str]:
    """A position for the name of each point (pixels), inside `frame` and with the least overlap with other things."""
    markers = [_Box(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]
    occupied: list[_Box] = []
    chosen = []
    for i, (point, name) in enumerate(zip(points, names, strict=True)):
        others = [marker for at, marker in enumerate(markers) if at != i] + [*obstacles, *occupied]
        costs = {}
        for position in _POSITIONS:
            box = _box(point, name, position)
            outside = (box.right - box.left) * (box.top - box.bottom) - box.overlap(frame)
            costs[position] = outside + sum(box.overlap(placed) for placed in others)
        best = min(costs, key=lambda position: costs[position])
        occupied.append(_box(point, name, best))
        chosen.append(best)
    return chosen


def _box(point: tuple[float, float], name: str, position: str) -> _Box:
    half = len(name) * _CHARACTER / 2
    across, up = _POSITIONS[position]
    x = point[0] + across * (half + (_GAP if up == 0 else 0))
    y = point[1] + up * (_LINE / 2 + _GAP)
    return _Box(x - half, y - _LINE / 2, x + half, y + _LINE / 2)


_PLOT = (1000.0, 330.0)  # pixels of the plot on a usual screen, for placing names

_BAR = 3.0  # pixels above and below an error bar that names avoid

_FAR = 8.0  # the axis is logarithmic where the slowest p95 is more than this many times the fastest


def plot_pareto(results: Measurements) -> go.Figure:
    """Quality against p95 of a whole query; arms that no other arm beats in both are joined by a line."""
    import plotly.graph_objects as go

    measure, frame = results.primary, pareto(results)
    axis = _time_axis(frame)
    on_axis = np.log10 if axis.get("type") == "log" else np.asarray
    (left, right), (width, height) = axis["range"], _PLOT
    least, highest = float(frame["quality_low"].min()), float(frame["quality_high"].max())
    reach = highest - least or 0.1
    bottom, top = least - 0.05 * reach, highest + 0.1 * reach
    xs, lows, highs = (
        (on_axis(frame[name]) - left) / (right - left) * width for name in ("p95", "p95_low", "p95_high")
    )
    ys = (frame["quality"] - bottom) / (top - bottom) * height
    bars = [_Box(low, y - _BAR, high, y + _BAR) for low, high, y in zip(lows, highs, ys, strict=True)]
    points = list(zip(xs, ys, strict=True))
    frame = frame.assign(position=_positions(points, list(frame["arm"]), _Box(0, 0, width, height), bars))
    best = frame[frame["frontier"]].sort_values("p95")
    figure = go.Figure(
        go.Scatter(
            x=best["p95"].tolist(),
            y=best["quality"].tolist(),
            mode="lines",
            line={"color": GREY, "width": 1.5, "dash": "dot", "shape": "hv"},
            name="frontier",
            hoverinfo="skip",
            showlegend=len(best) > 1,
        )
    )
    colors, line = arm_colors(results.arms), {"color": GREY, "thickness": 1, "width": 3}
    for name, rows, symbol in (
        ("best trade-off", best, "diamond"),
        ("another is better and faster", frame[~frame["frontier"]], "circle"),
    ):
        if rows.empty:
            continue
        figure.add_trace(
            go.Scatter(
                x=rows["p95"].tolist(),
                y=rows["quality"].tolist(),
                mode="markers+text",
                text=labels(rows["arm"]),
                textposition=rows["position"].tolist(),
                cliponaxis=False,
                name=name,
                marker={"color": [colors[arm] for arm in rows["arm"]], "symbol": symbol, "size": 11},
                error_y=error_bars(rows, "quality", "quality_low", "quality_high", **line),
                error_x=error_bars(rows, "p95", "p95_low", "p95_high", **line),
                customdata=rows[["p50"]].to_numpy().tolist(),
                hovertemplate=f"%{{text}}: {measure} %{{y:.3f}}, p95 %{{x:.0f}} ms, p50 %{{customdata[0]:.0f}} ms"
                "<extra></extra>",
            )
        )
    figure.update_xaxes(**axis)
    figure.update_yaxes(title=measure, tickformat=".2f", range=[bottom, top])
    return finish(figure, height=440)


def _time_axis(frame: pd.DataFrame) -> dict[str, Any]:
    """The axis of p95, logarithmic where fast arms would otherwise be too close to each other."""
    low, high = float(frame["p95_low"].min()), float(frame["p95_high"].max())
    if high <= _FAR * low:
        title = "p95 of a query in milliseconds"
        return {"title": title, "range": [max(0.0, low - 0.1 * (high - low)), high * 1.08]}
    ticks = [n * 10**power for power in range(-2, 6) for n in (1, 2, 5) if low * 0.7 <= n * 10**power <= high * 1.4]
    reach = [float(np.log10(low * 0.8)), float(np.log10(high * 1.25))]
    title = "p95 of a query in milliseconds (logarithmic)"
    return {
        "title": title,
        "type": "log",
        "range": reach,
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
    }


def pareto(results: Measurements) -> pd.DataFrame:
    """A row for every arm: arm, quality, p50, p95 and intervals, frontier (no other arm is better in both).

    Arms without a measured query or a judged topic have no row.
    """
    judged = {arm: results.values(arm, results.primary).tolist() for arm in results.arms}
    total = results.latency[(results.latency["stage"] == "total") & results.latency["arm"].map(judged).astype(bool)]
    frame = total[["arm", "p50", "p95", "p95_low", "p95_high"]].reset_index(drop=True)
    for end in ("p95_low", "p95_high"):  # of few queries there is no interval
        frame[end] = frame[end].fillna(frame["p95"])
    values = [judged[arm] for arm in frame["arm"]]
    frame.insert(1, "quality", [float(np.mean(values_of_arm)) for values_of_arm in values])
    ends = [t_statistic.mean(values_of_arm)[1:3] for values_of_arm in values]
    for i, name in enumerate(("quality_low", "quality_high")):
        frame[name] = [mean if end[i] != end[i] else end[i] for mean, end in zip(frame["quality"], ends, strict=True)]
    quality, p95 = frame["quality"], frame["p95"]
    beaten = [
        ((quality >= q) & (p95 <= ms) & ((quality > q) | (p95 < ms))).any() for q, ms in zip(quality, p95, strict=True)
    ]
    return frame.assign(frontier=~np.array(beaten, dtype=bool))
