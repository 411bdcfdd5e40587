"""The tables of the atlas: effects by collection, and the collections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.extras.atlas import meta
from ragbench.extras.atlas.changes import BASE, has_ranker
from ragbench.extras.atlas.meta import Pooled

if TYPE_CHECKING:
    import pandas as pd

EFFECTS, COLLECTIONS = "effects.csv", "collections.csv"
QUESTIONS = {"people": "user queries", "authors": "queries in the authors' words", "derived": "synthetic queries"}
"""Who wrote the topics: users who asked in public; authors of documents or benchmarks; a rule, from the documents."""
_TEXTS = dict.fromkeys(("collection", "base", "change", "questions", "kind", "language"), "str")


@dataclass(frozen=True)
class Atlas:
    """`effects`: a row per collection, base and change; `collections`: a row per collection."""

    effects: pd.DataFrame
    collections: pd.DataFrame

    @classmethod
    def load(cls, folder: Path = Path(__file__).parent) -> Atlas:
        """The tables in a folder, by default those that are shipped."""
        import pandas as pd

        return cls(*(pd.read_csv(folder / name, dtype=_TEXTS) for name in (EFFECTS, COLLECTIONS)))

    @cached_property
    def by_change(self) -> Mapping[tuple[str, str], pd.DataFrame]:
        """By base and change, the effects with the facts of their collections."""
        facts = self.collections.drop(columns="topics")
        joined = self.effects.merge(facts, on="collection", how="inner")
        return {(str(base), str(change)): group for (base, change), group in joined.groupby(["base", "change"])}

    def rows(self, change: str, base: str = BASE, questions: str | None = None, learned: bool = False) -> pd.DataFrame:
        """The effects of a change with the facts of their collections; of one kind of `questions` only where named.

        Collections that the learned order was learned from do not count as evidence for it: where only one of change
        and base has that order, they are excluded, unless `learned`."""
        frame = self.by_change.get((base, change))
        if frame is None:
            return self.effects.iloc[:0].merge(self.collections.drop(columns="topics"), on="collection")
        if not learned and has_ranker(change) != has_ranker(base):
            frame = frame[frame["learned"] == 0]
        return frame if questions is None else frame[frame["questions"] == questions]

    def pooled(self, change: str, base: str = BASE, questions: str | None = None) -> Pooled | None:
        """The pooled effect of a change; None where fewer than two collections have it."""
        frame = self.rows(change, base, questions)
        return pooled(frame) if len(frame) >= 2 else None

    def prior(self, change: str, base: str, questions: str) -> tuple[Pooled, str] | None:
        """What is known of a change for topics of one kind and of what; None where too few collections know it.

        Where too few collections have topics of that kind, all collections count, and that is said.
        """
        same_kind = self.pooled(change, base, questions)
        if same_kind is not None and same_kind.has_enough_collections:
            return same_kind, f"{same_kind.collections} other collections with {QUESTIONS[questions]}"
        pooled = self.pooled(change, base)
        if pooled is None or not pooled.has_enough_collections:
            return None
        few = len(self.rows(change, base, questions))
        return pooled, f"{pooled.collections} other collections ({few or 'none'} of them with {QUESTIONS[questions]})"

    def typical_sd(self, change: str, base: str) -> float:
        """The usual standard deviation of the differences by topic."""
        frame = self.rows(change, base)
        weights = frame["topics"].to_numpy(dtype=float)
        variances = frame["error"].to_numpy() ** 2 * weights
        return float((weights @ variances / weights.sum()) ** 0.5)


def pooled(rows: pd.DataFrame) -> Pooled:
    """Rows of effects pooled, a row per collection."""
    return meta.pool(rows["effect"].to_numpy(), meta.steadied(rows["error"].to_numpy(), rows["topics"].to_numpy()))
