"""The figures of the report as Plotly figures: `plot_effects(results).show()` in a notebook.

Colour is never the only sign: verdicts have shapes, bars have names, cells have numbers. Backgrounds are transparent,
and colours of series are visible on white and on near-black, so that a page may choose the colours of text and grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ragbench.base.columns import records
from ragbench.evaluation import diagnosis
from ragbench.evidence import t_statistic

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from ragbench.results.measurements import Measurements

# Contrast of at least 3:1 with both #ffffff and #171b21.
BLUE, ORANGE, GREEN, RED, PURPLE, TEAL, PINK, OLIVE, GREY = (
    *("#3d85c6", "#d07a1f", "#2f9464", "#d9534f", "#9068c9", "#1f939c", "#c85f9b", "#8a8a2e"),
    "#808892",
)
PALETTE = (BLUE, ORANGE, TEAL, PURPLE, OLIVE, PINK, GREEN, RED)

_ROW = 26  # pixels for one row of a chart with names along the side

VERDICTS = {
    "adopt": (GREEN, "diamond"),
    "confirm": (GREEN, "diamond-open"),
    "equivalent": (BLUE, "square"),
    "inconclusive": (GREY, "circle"),
    "reject": (RED, "x"),
}

_SHARE_SHOWN = 0.02  # parts that are smaller in every arm are added up: of the slowest query, of the relevant sections
_OTHERS = "all other stages"
_ELSEWHERE = "lost elsewhere"
_FAR = 8.0  # the axis is logarithmic where the slowest p95 is more than this many times the fastest


def plot_effects(results: Measurements) -> go.Figure:
    """Every effect (or every arm against the first) with its interval, best first, by verdict."""
    return effects(main_effects(results), results.primary)


def main_effects(results: Measurements) -> pd.DataFrame:
    """The effects of single factors, largest first, equal ones by name."""
    frame = results.verdicts
    frame = frame[frame["kind"] == "main"]
    return frame.sort_values(["effect", "factor"], ascending=[False, True], kind="stable", ignore_index=True)


def effects(frame: pd.DataFrame, measure: str) -> go.Figure:
    """A row for every row of `frame` (factor, effect, ci_low, ci_high, p, verdict), from the top in the same order."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for verdict, (color, symbol) in VERDICTS.items():
        rows = frame[frame["verdict"] == verdict]
        if rows.empty:
            continue
        figure.add_trace(
            go.Scatter(
                x=rows["effect"].tolist(),
                y=labels(rows["factor"]),
                name=verdict,
                mode="markers",
                marker={"color": color, "symbol": symbol, "size": 11},
                error_x=error_bars(rows, "effect", "ci_low", "ci_high", color=color, thickness=2, width=5),
                customdata=rows[["ci_low", "ci_high", "p"]].to_numpy().tolist(),
                hovertemplate="%{y}: %{x:+.3f} [%{customdata[0]:+.3f}, %{customdata[1]:+.3f}], "
                "p %{customdata[2]:.2g}<extra>" + verdict + "</extra>",
            )
        )
    figure.add_vline(x=0, line_width=1.5, line_color=GREY, line_dash="dot")
    figure.update_xaxes(title=f"difference in {measure}, with its interval", tickformat="+.2f")
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=labels(frame["factor"])[::-1])
    return finish(figure, rows=len(frame), legend="verdict")


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
    for end in ("p95_low", "p95_high"):  # few queries have no interval
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


def plot_latency(results: Measurements) -> go.Figure:
    """Mean milliseconds of every stage, stacked: the means add up to the mean of the query; percentiles would not."""
    frame = _stage_means(results)
    stages = list(dict.fromkeys(frame["stage"]))
    colors = {stage: GREY if stage == _OTHERS else PALETTE[n % len(PALETTE)] for n, stage in enumerate(stages)}
    styles = {stage: {"color": color} for stage, color in colors.items()}
    figure = _stacked_bars(results, frame.rename(columns={"stage": "part", "mean": "value"}), styles, "%{x:.2f} ms")
    figure.update_xaxes(title="mean milliseconds of a query")
    return finish(figure, rows=len(results.arms), legend="stage")


def _stacked_bars(results: Measurements, frame: pd.DataFrame, styles: Mapping[str, Any], caption: str) -> go.Figure:
    """A bar for every arm, made of the parts in `styles`; `frame`: arm, part, value; with `count` for `caption`."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for part, look in styles.items():
        rows = frame[frame["part"] == part]
        figure.add_trace(
            go.Bar(
                orientation="h",
                x=rows["value"].tolist(),
                y=labels(rows["arm"]),
                name=part,
                marker=look,
                customdata=rows["count"].tolist() if "count" in rows else None,
                hovertemplate=f"%{{y}}: {caption}<extra>{part}</extra>",
            )
        )
    figure.update_layout(barmode="stack")
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=labels(results.arms)[::-1])
    return figure


def _stage_means(results: Measurements) -> pd.DataFrame:
    """arm, stage, mean (ms), in the order of arms and stages; stages that are small in every arm are added up."""
    import pandas as pd

    frame = results.latency
    frame = frame[(frame["stage"] != "total") & ~frame["stage"].str.startswith("cold ")][["arm", "stage", "mean"]]
    slowest = frame.groupby("arm")["mean"].sum().max()
    largest = frame.groupby("stage", sort=False)["mean"].max()
    visible = set(largest[largest >= _SHARE_SHOWN * slowest].index)
    others = frame[~frame["stage"].isin(visible)].groupby("arm", sort=False)["mean"].sum().rename("mean").reset_index()
    return pd.concat([frame[frame["stage"].isin(visible)], others.assign(stage=_OTHERS)], ignore_index=True)


def plot_interactions(results: Measurements) -> go.Figure:
    """How much the effect of a factor grows when another is on, as a heat map; a star where p is below 0.05."""
    import plotly.graph_objects as go

    frame = results.verdicts
    frame = frame[frame["kind"] == "interaction"]
    factors = list(dict.fromkeys([*frame["factor"], *frame["other"]]))
    cells: list[list[float | None]] = [[None] * len(factors) for _ in factors]
    texts = [[""] * len(factors) for _ in factors]
    for row in records(frame):
        one, second = factors.index(row["factor"]), factors.index(row["other"])
        for i, j in ((one, second), (second, one)):
            cells[i][j] = float(row["effect"])
            texts[i][j] = f"{row['effect']:+.3f}" + ("*" if row["p"] < 0.05 else "")
    reach = max((abs(value) for line in cells for value in line if value is not None), default=1.0) or 1.0
    figure = go.Figure(
        go.Heatmap(
            z=cells,
            x=labels(factors),
            y=labels(factors),
            text=texts,
            texttemplate="%{text}",
            zmin=-reach,
            zmax=reach,
            colorscale=[[0, RED], [0.5, "#f4f5f7"], [1, BLUE]],
            xgap=2,
            ygap=2,
            hoverongaps=False,
            hovertemplate="%{y} with %{x}: %{z:+.4f}<extra></extra>",
            colorbar={"title": {"text": "interaction"}, "thickness": 12, "tickformat": "+.2f"},
        )
    )
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    figure.update_xaxes(type="category", showgrid=False)
    return finish(figure, height=150 + 44 * len(factors))


def plot_losses(results: Measurements) -> go.Figure:
    """The fates of the relevant sections, or documents, in every arm, as shares."""
    frame = results.losses
    fates = [describe_outcome(row["outcome"], row["stage"]) for row in records(frame)]
    units = diagnosis.unit(results.fates)
    largest = frame.groupby(fates)["share"].max()
    rare = set(largest[largest < _SHARE_SHOWN].index) - {diagnosis.FOUND}
    frame = frame.assign(fate=[_ELSEWHERE if name in rare else name for name in fates])
    frame = frame.groupby(["arm", "fate"], sort=False)[["sections", "share"]].sum().reset_index()
    total = frame.groupby("fate")["sections"].sum()
    order = sorted(map(str, total.index), key=lambda name: (_rank(name), -int(total[name])))
    colors = iter([color for color in PALETTE if color not in (BLUE, OLIVE)] * len(order))
    styles = {name: _bar_style(name) if name in _BAR_STYLES else {"color": next(colors)} for name in order}
    parts = frame.rename(columns={"fate": "part", "share": "value", "sections": "count"})
    figure = _stacked_bars(results, parts, styles, f"%{{customdata}} {units} (%{{x:.1%}})")
    figure.update_xaxes(title=f"share of the relevant {units}", tickformat=".0%", range=[0, 1.001])
    return finish(figure, rows=len(results.arms))


_BAR_STYLES = {
    diagnosis.FOUND: (BLUE, ""),
    diagnosis.NEVER: (GREY, ""),
    diagnosis.BURIED: (GREY, "/"),
    _ELSEWHERE: (GREY, "."),
}


def _bar_style(name: str) -> dict[str, object]:
    color, pattern = _BAR_STYLES[name]
    return {"color": color} | ({"pattern": {"shape": pattern, "solidity": 0.25}} if pattern else {})


def describe_outcome(outcome: str, stage: str) -> str:
    """An outcome of the diagnosis in words: `dropped by p10`, `ranked down by p6`, `never retrieved`."""
    by_no_stage = (diagnosis.FOUND, diagnosis.NEVER, diagnosis.FUSED_OUT, diagnosis.BURIED)
    return outcome if outcome in by_no_stage else f"{outcome} by {stage}"


def _rank(name: str) -> int:
    """The place of a fate: found first, then lost by stages, then never retrieved."""
    return {diagnosis.FOUND: 0, _ELSEWHERE: 2, diagnosis.BURIED: 3, diagnosis.NEVER: 4}.get(name, 1)


def arm_colors(arms: Iterable[str]) -> dict[str, str]:
    """The colour of every arm of a run, the same in each of its figures."""
    return {arm: PALETTE[number % len(PALETTE)] for number, arm in enumerate(arms)}


def labels(names: Iterable[str]) -> list[str]:
    """Names that Plotly shows as they are: it would read some tags in labels as formatting."""
    return [escape(str(name), quote=False) for name in names]


def finish(figure: Any, *, legend: str = "", rows: int = 0, height: int = 0) -> Any:
    """The figure with the common layout; `height` in pixels, or the number of `rows` of names along its side."""
    figure.update_layout(
        template="none",
        height=height or 150 + _ROW * max(rows, 2),
        margin={"l": 10, "r": 24, "t": 44, "b": 56},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": BLUE},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, -apple-system, 'Segoe UI', sans-serif", "size": 13},
        # Beside the data there is room for any number of entries.
        legend={"x": 1.02, "xanchor": "left", "y": 1, "yanchor": "top", "traceorder": "normal"}
        | ({"title": {"text": legend}} if legend else {}),
        hoverlabel={"font": {"family": "system-ui, sans-serif"}},
        bargap=0.3,
    )
    figure.update_xaxes(automargin=True, gridcolor="rgba(128,136,146,0.25)", zeroline=False, fixedrange=True)
    figure.update_xaxes(title_font_size=13)
    figure.update_yaxes(title_font_size=13, title_standoff=14)
    figure.update_yaxes(automargin=True, gridcolor="rgba(128,136,146,0.25)", zeroline=False, fixedrange=True)
    return figure


def error_bars(rows: pd.DataFrame, value: str, low: str, high: str, **line: Any) -> dict[str, Any]:
    """The bars of the intervals between two columns around the values of another one."""
    return {
        "type": "data",
        "symmetric": False,
        "array": (rows[high] - rows[value]).tolist(),
        "arrayminus": (rows[value] - rows[low]).tolist(),
        **line,
    }
