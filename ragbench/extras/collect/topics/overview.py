"""How many topics there are of each kind, and which kinds are short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ragbench.base import minimums
from ragbench.benchmark.benchmark import Topic

if TYPE_CHECKING:
    import pandas as pd


class HasTopics(Protocol):
    """A benchmark, or topics that will become one."""

    @property
    def topics(self) -> Sequence[Topic]:
        """The topics."""


def overview(source: HasTopics) -> pd.DataFrame:
    """One row for each kind and author: type, provenance, topics in each split, and how many are missing to 25."""
    import pandas as pd

    counts = Counter((topic.type, topic.provenance or "given", topic.split) for topic in source.topics)
    splits = sorted({split for _, _, split in counts})
    kinds = sorted({(kind, author) for kind, author, _ in counts})
    rows = []
    for kind in kinds:
        row = [counts[*kind, split] for split in splits]
        missing = {split: minimums.PER_TYPE - n for split, n in zip(splits, row, strict=True)}
        short = [f"{n} in {split}" for split, n in missing.items() if n > 0]
        rows.append((*kind, *row, ", ".join(short)))
    return pd.DataFrame(rows, columns=["type", "provenance", *splits, "short by"])


def titled(table: pd.DataFrame) -> pd.DataFrame:
    """`overview` with a title for the screen; JSON keeps the key."""
    return table.rename(columns={"short by": f"needed for {minimums.PER_TYPE}"})
