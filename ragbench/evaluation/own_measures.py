"""A function as a measure.

    @ragbench.measure
    def first_is_best(ranked, grades):      # the ids of the hits, best first, and the grades of judged ones
        return float(bool(ranked) and grades.get(ranked[0], 0) == max(grades.values()))

`measures=[nDCG@10,first_is_best]` then measures it too, for every topic with a relevant judgment, at every level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ragbench.base import extensions
from ragbench.base.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])


def measure(function: F) -> F:
    """Register a function as a measure under its name. It takes ranked ids and grades by id, and returns a number."""
    extensions.register("measure", function.__name__, function)
    return function


def is_own(name: str) -> bool:
    """Whether a measure is a function that a user registered."""
    return extensions.find("measure", name) is not None


def value(name: str, hits: Sequence[tuple[str, float]], grades: Mapping[str, int]) -> float:
    """The measure of one topic. Raises ConfigError unless it is a finite number."""
    returned = extensions.call(
        f"measure '{name}'", extensions.find("measure", name), [docno for docno, _ in hits], dict(grades)
    )
    try:
        found = float(returned)
    except (TypeError, ValueError, OverflowError):
        found = float("nan")
    if not abs(found) < float("inf"):
        raise ConfigError(f"measure '{name}' must give a finite number, gave {returned!r:.60}")
    return found
