"""How often the query classifier of P3 agrees with the types that a benchmark's authors gave their queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.base.types import QUERY_CLASSES, QueryClass
from ragbench.search.stages.classify import classify

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Topic


def expected(kind: str) -> QueryClass:
    """The class that serves a type of query best: words for facts and code, links for places, meaning for the rest."""
    if kind in ("factual", "code"):
        return "factual"
    return "navigational" if kind == "navigational" else "exploratory"


@dataclass(frozen=True)
class Agreement:
    """`accuracy` (0 to 1) over `n` queries; `baseline` is the accuracy of always naming the most frequent class.

    `confusion` has a row for every type: the expected class, the queries put into each class, and `right`, their share.
    """

    n: int
    accuracy: float
    baseline: float
    confusion: pd.DataFrame


def agreement(topics: Sequence[Topic]) -> Agreement:
    """Classify the topics and compare the classes with those expected of their types."""
    import pandas as pd

    frame = pd.DataFrame(
        [(t.type, expected(t.type), classify(t.text)) for t in topics], columns=["type", "expected", "found"]
    )
    right = frame["expected"] == frame["found"]
    rows = []
    for kind, each in frame.groupby("type", sort=True):
        found: dict[str, int] = {name: int((each["found"] == name).sum()) for name in QUERY_CLASSES}
        rows.append({"type": kind, "expected": expected(str(kind)), **found, "right": float(right[each.index].mean())})
    baseline = float(frame["expected"].value_counts(normalize=True).max())
    return Agreement(len(frame), float(right.mean()), baseline, pd.DataFrame(rows))
