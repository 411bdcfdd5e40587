"""Quality against time as SVG for a document: without scripts, the same bytes for the same results."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ragbench.base.errors import ResultsError
from ragbench.report.canvas import GREY, arm_colors
from ragbench.report.pareto import pareto

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

_INK = "#444444"
_COLUMNS = ("arm", "quality", "p95", "p95_low", "p95_high", "frontier")


def svg(results: Measurements) -> str:
    """The arms of a run by p95 and primary measure. Raises ResultsError when no time was measured."""
    from ragbench.report import evidence

    if not len(results.latency):
        raise ResultsError(f"{results.folder} holds no times to draw: run again with latency.enabled=true")
    return draw(pareto(results), evidence.primary(results), arm_colors(results.arms))


def draw(frame: pd.DataFrame, measure: str, colors: Mapping[str, str]) -> str:
    """A point for every row of `frame` (made by `pareto`), with the interval of p95; a line joins the frontier."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    # Text stays text, and the file does not depend on the time or on random ids.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ragbench", "font.family": "sans-serif"}):
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        axes = figure.add_subplot()
        best = frame[frame["frontier"]].sort_values("p95")
        axes.step(best["p95"], best["quality"], where="post", color=GREY, linestyle=":", linewidth=1.5)
        for arm, quality, p95, low, high, frontier in zip(*(frame[name] for name in _COLUMNS), strict=True):
            spread = [[p95 - low], [high - p95]]
            sign, color = "D" if frontier else "o", colors[arm]
            axes.errorbar(
                p95, quality, xerr=spread, fmt=sign, color=color, ecolor=GREY, markersize=7, capsize=2, linewidth=1
            )
            axes.annotate(arm, (p95, quality), (0, 8), textcoords="offset points", ha="center", parse_math=False)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.margins(x=0.15, y=0.2)
        axes.set_xlabel("p95 of a query in milliseconds (logarithmic)", color=_INK)
        axes.set_ylabel(measure, color=_INK)
        axes.tick_params(which="both", labelsize=8, colors=_INK)
        axes.spines[["top", "right"]].set_visible(False)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": "ragbench"})
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"
