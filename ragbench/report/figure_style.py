"""What all figures share: colours, size, and how names are shown.

Backgrounds are transparent, and colours of series are visible on white and on near-black, so that a page may choose the
colours of text and grid.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

# Contrast of at least 3:1 with both #ffffff and #171b21.
BLUE, ORANGE, GREEN, RED, PURPLE, TEAL, PINK, OLIVE, GREY = (
    *("#3d85c6", "#d07a1f", "#2f9464", "#d9534f", "#9068c9", "#1f939c", "#c85f9b", "#8a8a2e"),
    "#808892",
)
PALETTE = (BLUE, ORANGE, TEAL, PURPLE, OLIVE, PINK, GREEN, RED)

_ROW = 26  # pixels for one row of a chart with names along the side


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
