"""A trend as a table and as sentences."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragbench.base.columns import Columns
from ragbench.base.types import counted, with_interval
from ragbench.extras.tracking.trend import CONFIRMED, TrendPoint

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = Columns.of(
    *("line", "date", "run", "queries", "mean", "low", "high", "change", "change_low", "change_high", "note")
)
"""`line`: runs of one line can be compared. `date` in UTC, `run` its id in MLflow, `change` from the first runs."""


def frame(points: Sequence[TrendPoint]) -> pd.DataFrame:
    """A row for every point, by time."""
    return COLUMNS.frame(map(_row, points))


def _row(point: TrendPoint) -> tuple[Any, ...]:
    date = time.strftime("%Y-%m-%d %H:%M", time.gmtime(point.night.at))
    change: tuple[float | None, ...] = (None, None, None)
    if point.change:
        change = (point.change.difference, point.change.ci_low, point.change.ci_high)
    drop = {"": "", "begins": f"ALARM: lower in {CONFIRMED} runs in a row", "lasts": "still lower"}[point.alarm]
    note = f"new line: {point.broke}" if point.broke else drop
    mean = point.mean
    return point.line, date, point.night.run[:8], mean.n, mean.mean, mean.low, mean.high, *change, note


def compact(points: Sequence[TrendPoint]) -> pd.DataFrame:
    """The points for a screen: means and changes with their CIs as texts."""
    import pandas as pd

    rows = []
    for point in points:
        line, date, run, queries, mean, low, high, change, change_low, change_high, note = _row(point)
        value = f"{mean:.3f} [{low:.3f} {high:.3f}]" if low == low else f"{mean:.3f}"
        moved = "" if change is None else with_interval(change, change_low, change_high)
        rows.append((line, date, run, queries, value, moved, note))
    return pd.DataFrame(rows, columns=["line", "date", "run", "queries", "mean [95% CI]", "change [95% CI]", "note"])


def sentence(points: Sequence[TrendPoint]) -> str:
    """The state of the newest line."""
    last = points[-1]
    line = [point for point in points if point.line == last.line]
    if last.change is None:
        return f"line {last.line} has one run, so there is nothing to compare" + (
            f": {last.broke}" if last.broke else ""
        )
    words = {"": "no alarm", "begins": "ALARM", "lasts": "the alarm lasts"}[last.alarm]
    return f"line {last.line} of {counted(len(line), 'run')}: {words}; the last is {last.change.difference:+.3f}"
