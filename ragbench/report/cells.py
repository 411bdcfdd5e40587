"""Cells and tables of the page, and how numbers are written in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

_MINUS = "\u2212"
MARKS = {"adopt": "✓", "confirm": "✓?", "equivalent": "=", "inconclusive": "?", "reject": "✕"}
"""A sign for every verdict, so that none is shown by colour alone; ordered from acceptance to rejection."""


class Cell(NamedTuple):
    """A cell of a table; `note` is printed smaller below the text, `kind` is a class of the style sheet."""

    text: str
    note: str = ""
    kind: str = ""


class PageColumn(NamedTuple):
    """A column of a page's table: its heading, what it means, and its cell for a row; `shown`: whether it is there."""

    heading: str
    note: str
    cell: Callable[[Any], Cell]
    shown: bool = True


@dataclass(frozen=True)
class Table:
    """A table: `columns` are (heading, what it means), the first cell of every row names the row.

    `remarks`, where given, has one sentence for every row, printed below it over the whole width.
    """

    caption: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Cell, ...], ...]
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, caption: str, columns: Iterable[PageColumn], rows: Iterable[Any], remarks: Iterable[str] = ()) -> Table:
        """A table whose columns make their cells from the rows, which may be of any kind."""
        visible = [column for column in columns if column.shown]
        heads = tuple((column.heading, column.note) for column in visible)
        return cls(caption, heads, tuple(tuple(column.cell(row) for column in visible) for row in rows), tuple(remarks))


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign and a true minus, such as `+0.012`; empty for NaN."""
    return "" if math.isnan(value) else f"{value:+.{digits}f}".replace("-", _MINUS)


def plain(value: float, digits: int = 3) -> str:
    """A number without a plus, such as `0.512`; empty for NaN."""
    return "" if math.isnan(value) else f"{value:.{digits}f}".replace("-", _MINUS)


def interval(low: float, high: float, digits: int = 3) -> str:
    """An interval such as `[-0.010, +0.020]`; empty for NaN."""
    return "" if math.isnan(low) or math.isnan(high) else f"[{signed(low, digits)}, {signed(high, digits)}]"


def p_value(p: float) -> str:
    """A p value with two or three digits, `< 0.001` instead of 0; empty for NaN."""
    return "" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def direction(low: float, high: float) -> str:
    """`better` or `worse` where an interval does not contain 0, else empty."""
    return "better" if low > 0 else "worse" if high < 0 else ""


def join_names(items: Iterable[str]) -> str:
    """Names as a list in words: `a, b and c`."""
    names = list(items)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
