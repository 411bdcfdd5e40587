"""How effects, intervals and counts are written in a terminal and in markdown."""

from __future__ import annotations


def interval(low: float, high: float, digits: int = 3) -> str:
    """`[+0.036, +0.074]`."""
    return f"[{low:+.{digits}f}, {high:+.{digits}f}]"


def with_interval(effect: float, low: float, high: float, digits: int = 3) -> str:
    """`+0.055 [+0.036, +0.074]`."""
    return f"{effect:+.{digits}f} {interval(low, high, digits)}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 query`, `2,044 queries`, `0 topics`."""
    plural = f"{noun[:-1]}ies" if noun[-1] == "y" and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def too_few(number: int, noun: str) -> str:
    """`1 query is too few`, `8 queries are too few`."""
    return f"{counted(number, noun)} {'is' if number == 1 else 'are'} too few"


def probability(share: float) -> str:
    """`0.87`; `> 0.99` above that, because no prediction is certain."""
    return f"{share:.2f}" if share < 0.995 else "> 0.99"
