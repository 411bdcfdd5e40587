"""A configuration over time: nights in lines that can be compared, and the drops in them.

Nights are runs of one arm. A line ends where documents, queries, judgments, measure, models or the CPU change, since
values before and after are not of the same task. Within a line, a night is compared with the mean of the first
`REFERENCE` nights, query by query, so that small drops add up; the `CONFIRMED` nights before it are not in the
reference. An alarm needs a drop with p of at most `LEVEL` in each of `CONFIRMED` nights in a row: noise differs from
night to night, and a drop stays. It lasts until a night is as good as the reference. `research/bench/trend.py` has how
often it is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ragbench.evidence import statistics, t_statistic
from ragbench.extras.tracking.store import FACTS

REFERENCE = 7
"""Nights at the beginning of a line whose mean is compared with."""
CONFIRMED, LEVEL = 3, 0.2
"""Nights in a row with a drop that make an alarm, and the largest two-sided p of each."""
DRAWS = 2000


@dataclass(frozen=True)
class Night:
    """A run of an arm: its time in seconds since 1970, its name, values by query, and a digest or name per fact."""

    at: float
    run: str
    values: Mapping[str, float]
    facts: Mapping[str, str]


@dataclass(frozen=True)
class TrendPoint:
    """A night in its line: the mean and its CI, the change from the reference, and whether an alarm begins or lasts.

    `line`: its number, from 1. `change` is None at the beginning of a line, and `broke` says there what changed.
    """

    night: Night
    line: int
    mean: t_statistic.Mean
    change: statistics.Comparison | None = None
    alarm: Literal["", "begins", "lasts"] = ""
    broke: str = ""


def points(nights: Sequence[Night], draws: int = DRAWS) -> list[TrendPoint]:
    """The nights by time, in lines, each with its change and alarm."""
    found = []
    for number, (broke, line) in enumerate(_lines(sorted(nights, key=lambda night: night.at)), start=1):
        in_a_row, alarm = 0, False
        for place, (night, change) in enumerate(zip(line, _changes(line, draws), strict=True)):
            drop = change.difference if change else 0.0
            in_a_row = in_a_row + 1 if change and drop < 0 and change.p_value <= LEVEL else 0
            was, alarm = alarm, drop < 0 and (alarm or in_a_row >= CONFIRMED)
            mean = t_statistic.mean(list(night.values.values()))
            state: Literal["", "begins", "lasts"] = "" if not alarm else "lasts" if was else "begins"
            found.append(TrendPoint(night, number, mean, change, state, broke if place == 0 else ""))
    return found


def _lines(nights: Sequence[Night]) -> Iterator[tuple[str, list[Night]]]:
    """What changed before each line, and its nights."""
    line: list[Night] = []
    broke = ""
    for night in nights:
        if line and (changed := _changed(line[-1], night)):
            yield broke, line
            broke, line = f"{' and '.join(changed)} changed", []
        line.append(night)
    if line:
        yield broke, line


def _changed(before: Night, now: Night) -> list[str]:
    """The facts that differ; other queries with values are other queries."""
    changed = [name for name in FACTS if before.facts.get(name) != now.facts.get(name)]
    if "judgments" in changed and {"documents", "queries"}.intersection(changed):
        changed.remove("judgments")  # their digest covers all three
    return changed or (["queries"] if before.values.keys() != now.values.keys() else [])


def _changes(line: Sequence[Night], draws: int) -> list[statistics.Comparison | None]:
    """Each night against the reference; None for the first. Equal values have one comparison."""
    if not line:
        return []
    queries = sorted(line[0].values)
    values = np.array([[night.values[query] for query in queries] for night in line])
    known: dict[bytes, statistics.Comparison] = {}

    def change(place: int) -> statistics.Comparison | None:
        if place == 0 or not queries:
            return None
        pair = np.stack([values[place], reference(values, place)])
        return known.get(pair.tobytes()) or known.setdefault(
            pair.tobytes(), statistics.compare(pair[0], pair[1], seed=0, draws=draws)
        )

    return [change(place) for place in range(len(line))]


def reference(values: NDArray[np.float64], place: int) -> NDArray[np.float64]:
    """The mean by query, shape (queries,), that row `place` of (nights, queries) is compared with."""
    return np.asarray(values[: max(1, min(REFERENCE, place - CONFIRMED))].mean(axis=0))
