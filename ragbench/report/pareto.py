"""Quality against time, and the configurations that no other one beats in both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ragbench.evidence import t_statistic
from ragbench.report.figures import GREY, arm_colors, error_bars, finish, labels

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from ragbench.results.measurements import Measurements

_FAR = 8.0  # the axis is logarithmic where the slowest p95 is more than this many times the fastest


def plot_pareto(results: Measurements) -> go.Figure:
    """Quality against p95 of a whole query; arms that no other arm beats in both are joined by a line."""
    import plotly.graph_objects as go

    measure, frame = results.primary, pareto(results)
    axis = _time_axis(frame)
    least, highest = float(frame["quality_low"].min()), float(frame["quality_high"].max())
    reach = highest - least or 0.1
    bottom, top = least - 0.05 * reach, highest + 0.1 * reach
    order = (
        frame["p95"].rank(method="first").astype(int) - 1
    )  # names of neighbours differ in height, none leaves the plot
    sides = ["right" if 2 * place < len(frame) else "left" for place in order]
    frame = frame.assign(
        position=[f"{('top', 'bottom')[at % 2]} {side}" for at, side in zip(order, sides, strict=True)]
    )
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
