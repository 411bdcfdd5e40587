"""Shapes of an SVG file for a page: without scripts, the same bytes for the same values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

INK, GRID, WIDTH = "#444444", "#eeeeee", 720.0
_STROKE = 1.2


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` as pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        return round(self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start), 2)

    def ticks(self) -> list[float]:
        """Multiples of 1, 2 or 5 times a power of ten inside the scale, at most eight."""
        reach = (self.high - self.low) or 1.0
        power = 10.0 ** math.floor(math.log10(reach / 8))
        step = next(digit * power for digit in (1, 2, 5, 10, 20) if reach / (digit * power) < 8)
        return [n * step for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def line(x1: float, y1: float, x2: float, y2: float, color: str, width: float = _STROKE) -> str:
    """A straight line."""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" stroke-width="{width:g}"/>'


def text(x: float, y: float, content: str, anchor: str = "middle") -> str:
    """Words at a place."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(content)}</text>'


def mark(x: float, y: float, size: float, color: str) -> str:
    """A diamond."""
    corners = ((x, y - size), (x + size, y), (x, y + size), (x - size, y))
    return f'<polygon points="{" ".join(f"{a:g},{b:g}" for a, b in corners)}" fill="{color}"/>'


def document(height: float, elements: Iterable[str]) -> str:
    """An SVG file."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" width="{WIDTH:g}" '
    head += f'height="{height:g}" font-family="sans-serif" font-size="12" fill="{INK}">'
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', head, background, *elements, "</svg>"]) + "\n"
