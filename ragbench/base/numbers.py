"""How an effect and its interval are written in a terminal and in markdown."""

from __future__ import annotations


def interval(low: float, high: float, digits: int = 3) -> str:
    """`[+0.036, +0.074]`."""
    return f"[{low:+.{digits}f}, {high:+.{digits}f}]"


def with_interval(effect: float, low: float, high: float, digits: int = 3) -> str:
    """`+0.055 [+0.036, +0.074]`."""
    return f"{effect:+.{digits}f} {interval(low, high, digits)}"
