"""Quality against time: which configurations no other one beats in both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ragbench.report import evidence
from ragbench.report.canvas import BLUE, GREY, finished, labels
from ragbench.report.labels import Box, positions

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from ragbench.experiment.results import Results

_PLOT = (1000.0, 330.0)  # pixels that the arms spread over on a usual screen, for placing their names
_BAR = 3.0  # pixels above and below an error bar that names keep off
_FAR = 8.0  # from here on, the slowest p95 over the fastest, the axis is logarithmic


def plot_pareto(results: Results) -> go.Figure:
    """Quality against p95 of a whole query; arms that no other arm beats in both are joined by a line."""
    import plotly.graph_objects as go

    measure, frame = evidence.primary(results), pareto(results)
    axis = _time_axis(frame)
    on_axis = np.log10 if axis.get("type") == "log" else np.asarray
    xs, lows, highs = (on_axis(frame[name]).tolist() for name in ("p95", "p95_low", "p95_high"))
    reach = float(frame["quality"].max() - frame["quality"].min()) or 0.1
    bottom, top = float(frame["quality"].min()) - 0.1 * reach, float(frame["quality"].max()) + 0.1 * reach
    width, height = _PLOT
    points = [
        ((x - axis["range"][0]) / (axis["range"][1] - axis["range"][0]) * width, (y - bottom) / (top - bottom) * height)
        for x, y in zip(xs, frame["quality"], strict=True)
    ]
    scale = width / (axis["range"][1] - axis["range"][0])
    bars = [
        Box(x - (mid - low) * scale, y - _BAR, x + (high - mid) * scale, y + _BAR)
        for (x, y), mid, low, high in zip(points, xs, lows, highs, strict=True)
    ]
    frame = frame.assign(position=positions(points, list(frame["arm"]), Box(0, 0, width, height), bars))
    best = frame[frame["frontier"]].sort_values("p95")
    figure = go.Figure(
        go.Scatter(
            x=best["p95"].tolist(),
            y=best["quality"].tolist(),
            mode="lines",
            line={"color": BLUE, "width": 1.5, "dash": "dot", "shape": "hv"},
            name="frontier",
            hoverinfo="skip",
            showlegend=len(best) > 1,
        )
    )
    for name, rows, color, symbol in (
        ("none is better and faster", best, BLUE, "diamond"),
        ("another is better and faster", frame[~frame["frontier"]], GREY, "circle"),
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
                marker={"color": color, "symbol": symbol, "size": 11},
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": (rows["p95_high"] - rows["p95"]).tolist(),
                    "arrayminus": (rows["p95"] - rows["p95_low"]).tolist(),
                    "color": color,
                    "thickness": 1,
                    "width": 3,
                },
                customdata=rows[["p50"]].to_numpy().tolist(),
                hovertemplate=f"%{{text}}: {measure} %{{y:.3f}}, p95 %{{x:.0f}} ms, p50 %{{customdata[0]:.0f}} ms"
                "<extra></extra>",
            )
        )
    figure.update_xaxes(**axis)
    figure.update_yaxes(title=measure, tickformat=".2f", range=[bottom, top])
    return finished(figure, height=440)


def _time_axis(frame: pd.DataFrame) -> dict[str, Any]:
    """The axis of p95, logarithmic where the fast arms would else lie on one heap."""
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


def pareto(results: Results) -> pd.DataFrame:
    """arm, quality, p50, p95, p95_low, p95_high, frontier: no other arm is as good and as fast, and better in one."""
    total = results.latency[results.latency["stage"] == "total"]
    frame = total[["arm", "p50", "p95", "p95_low", "p95_high"]].reset_index(drop=True)
    quality = [float(results.values(arm, evidence.primary(results)).mean()) for arm in frame["arm"]]
    frame.insert(1, "quality", quality)
    better = [
        bool(
            (
                (frame["quality"] >= row["quality"])
                & (frame["p95"] <= row["p95"])
                & ((frame["quality"] > row["quality"]) | (frame["p95"] < row["p95"]))
            ).any()
        )
        for row in evidence.rows(frame)
    ]
    return frame.assign(frontier=~np.array(better, dtype=bool))
