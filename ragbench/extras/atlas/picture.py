"""Quality against time as SVG for a document: without scripts, the same bytes for the same results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from ragbench.base.errors import ResultsError
from ragbench.report.figures import GREY, arm_colors
from ragbench.report.pareto import pareto

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

INK, GRID, WIDTH = "#444444", "#eeeeee", 720.0
_LEFT, _RIGHT, _TOP, _BOTTOM, _STROKE = 64.0, 700.0, 12.0, 290.0, 1.2
_COLUMNS = ("arm", "quality", "p95", "p95_low", "p95_high", "frontier")


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` as pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high, at = (math.log10(number) if self.log else number for number in (self.low, self.high, value))
        return round(self.start + (at - low) / ((high - low) or 1.0) * (self.end - self.start), 2)

    def ticks(self) -> list[float]:
        """Round values inside the scale: 1, 2 and 5 times powers of ten, or their multiples, at most eight."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
            return [step for step in steps if self.low <= step <= self.high]
        reach = (self.high - self.low) or 1.0
        power = 10.0 ** math.floor(math.log10(reach / 8))
        step = next(digit * power for digit in (1, 2, 5, 10, 20) if reach / (digit * power) < 8)
        return [n * step for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def line(x1: float, y1: float, x2: float, y2: float, color: str, width: float = _STROKE, more: str = "") -> str:
    """A straight line."""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" stroke-width="{width:g}"{more}/>'


def text(x: float, y: float, content: str, anchor: str = "middle", more: str = "") -> str:
    """Words at a place."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>{escape(content)}</text>'


def mark(x: float, y: float, size: float, color: str, diamond: bool = True) -> str:
    """A diamond or a circle."""
    if not diamond:
        return f'<circle cx="{x:g}" cy="{y:g}" r="{size:g}" fill="{color}"/>'
    corners = ((x, y - size), (x + size, y), (x, y + size), (x - size, y))
    return f'<polygon points="{" ".join(f"{a:g},{b:g}" for a, b in corners)}" fill="{color}"/>'


def document(height: float, elements: Iterable[str]) -> str:
    """An SVG file."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" width="{WIDTH:g}" '
    head += f'height="{height:g}" font-family="sans-serif" font-size="12" fill="{INK}">'
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', head, background, *elements, "</svg>"]) + "\n"


def svg(results: Measurements) -> str:
    """The arms of a run by p95 and primary measure. Raises ResultsError when no time was measured."""

    if not len(results.latency):
        raise ResultsError(f"{results.folder} holds no times to draw: run again with latency.enabled=true")
    return draw(pareto(results), results.primary, arm_colors(results.arms))


def draw(frame: pd.DataFrame, measure: str, colors: Mapping[str, str]) -> str:
    """A point for every row of `frame` (made by `pareto`), with the interval of p95; a line joins the frontier."""
    x = Scale(float(frame["p95_low"].min()) * 0.7, float(frame["p95_high"].max()) * 1.4, _LEFT, _RIGHT, log=True)
    low, high = float(frame["quality"].min()), float(frame["quality"].max())
    margin = 0.2 * (high - low) or 0.05
    y = Scale(low - margin, high + margin, _BOTTOM, _TOP)
    parts = [line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, INK), line(_LEFT, _TOP, _LEFT, _BOTTOM, INK)]
    for tick in x.ticks():
        parts += [line(x(tick), _BOTTOM, x(tick), _BOTTOM + 4, INK), text(x(tick), _BOTTOM + 18, f"{tick:g}")]
    for tick in y.ticks():
        parts += [line(_LEFT - 4, y(tick), _LEFT, y(tick), INK), text(_LEFT - 8, y(tick) + 4, f"{tick:.3g}", "end")]
    best = frame[frame["frontier"]].sort_values("p95")
    steps = [(x(p95), y(quality)) for p95, quality in zip(best["p95"], best["quality"], strict=True)]
    for (x1, y1), (x2, y2) in itertools.pairwise(steps):
        parts += [line(*ends, GREY, 1.5, ' stroke-dasharray="2 3"') for ends in ((x1, y1, x2, y1), (x2, y1, x2, y2))]
    for arm, quality, p95, fastest, slowest, frontier in zip(*(frame[name] for name in _COLUMNS), strict=True):
        parts.append(line(x(fastest), y(quality), x(slowest), y(quality), GREY))
        parts.append(mark(x(p95), y(quality), 5.5, colors[arm], bool(frontier)))
        parts.append(text(x(p95), y(quality) - 11, str(arm)))
    parts.append(text((_LEFT + _RIGHT) / 2, _BOTTOM + 40, "p95 of a query in milliseconds (logarithmic)"))
    middle = (_TOP + _BOTTOM) / 2
    parts.append(text(16, middle, measure, more=f' transform="rotate(-90 16 {middle:g})"'))
    return document(_BOTTOM + 50, parts)
