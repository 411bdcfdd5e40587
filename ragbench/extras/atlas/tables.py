"""The tables of the atlas: effects by collection, and the collections, shipped or added by the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import files, locations, minimums
from ragbench.base.errors import ResultsError
from ragbench.extras.atlas import meta
from ragbench.extras.atlas.changes import BASE, BASES, has_ranker
from ragbench.extras.atlas.meta import Moderator, Pooled

if TYPE_CHECKING:
    import pandas as pd

EFFECTS, COLLECTIONS = "effects.csv", "collections.csv"
EFFECT_COLUMNS = ("collection", "base", "change", "topics", "mean", "effect", "error", "better", "worse")
COLLECTION_COLUMNS = (
    *("collection", "questions", "kind", "software", "language", "documents", "topics", "median_words"),
    *(
        "links_per_document",
        "code_share",
        "query_words",
        "learned",
        "source",
        "licence",
        "digest",
        "version",
        "command",
    ),
)
QUESTIONS = ("people", "authors", "derived")
"""Who wrote the topics: users who asked in public; authors of documents or benchmarks; a rule, from the documents."""
_MODERATORS = ("documents", "median_words", "links_per_document", "code_share", "query_words")
_LOGARITHMIC = ("documents", "median_words", "links_per_document")
_TEXTS = dict.fromkeys(("collection", "base", "change", "questions", "kind", "language"), "str")


@dataclass(frozen=True)
class Atlas:
    """Effects and collections as tables with `EFFECT_COLUMNS` and `COLLECTION_COLUMNS`."""

    effects: pd.DataFrame
    collections: pd.DataFrame

    @classmethod
    def load(cls, folder: Path | None = None) -> Atlas:
        """The tables that are shipped, with those that `ragbench atlas add` wrote for this user; or those in `folder`.

        Raises ResultsError for a table that cannot be read.
        """
        import pandas as pd

        if folder is not None:
            return cls(_read(folder / EFFECTS, EFFECT_COLUMNS), _read(folder / COLLECTIONS, COLLECTION_COLUMNS))
        shipped = cls.load(Path(__file__).parent)
        if not (own_folder() / EFFECTS).is_file():
            return shipped
        own_atlas = cls.load(own_folder())
        kept_rows = ~shipped.collections["digest"].isin(own_atlas.collections["digest"])
        collections = pd.concat([shipped.collections[kept_rows], own_atlas.collections], ignore_index=True)
        kept_rows = shipped.effects["collection"].isin(shipped.collections.loc[kept_rows, "collection"])
        return cls(pd.concat([shipped.effects[kept_rows], own_atlas.effects], ignore_index=True), collections)

    def write(self, folder: Path) -> None:
        """Write both tables, sorted."""
        effects = self.effects.sort_values(["collection", "base", "change"])[list(EFFECT_COLUMNS)]
        collections = self.collections.sort_values("collection")[list(COLLECTION_COLUMNS)]
        for name, frame in ((COLLECTIONS, collections), (EFFECTS, effects)):  # `load` looks for the second
            files.write_text(folder / name, frame.to_csv(index=False, float_format="%.5f"))

    @cached_property
    def _by_change(self) -> Mapping[tuple[str, str], pd.DataFrame]:
        facts = self.collections.drop(columns="topics")
        joined = self.effects.merge(facts, on="collection", how="inner")
        return {(str(base), str(change)): group for (base, change), group in joined.groupby(["base", "change"])}

    def rows(self, change: str, base: str = BASE, questions: str | None = None, learned: bool = False) -> pd.DataFrame:
        """The effects of a change with the facts of their collections; of one kind of `questions` only where named.

        Collections that the learned order was learned from do not count as evidence for it: where only one of change
        and base has that order, they are excluded, unless `learned`."""
        frame = self._by_change.get((base, change))
        if frame is None:
            return self.effects.iloc[:0].merge(self.collections.drop(columns="topics"), on="collection")
        if not learned and has_ranker(change) != has_ranker(base):
            frame = frame[frame["learned"] == 0]
        return frame if questions is None else frame[frame["questions"] == questions]

    def pooled(self, change: str, base: str = BASE, questions: str | None = None) -> Pooled | None:
        """The pooled effect of a change; None where fewer than two collections have it."""
        frame = self.rows(change, base, questions)
        if len(frame) < 2:
            return None
        return pooled(frame)

    def prior(self, change: str, base: str, questions: str) -> tuple[Pooled, str] | None:
        """What is known of a change for topics of one kind and of what; None where too few collections know it.

        Where too few collections have topics of that kind, all collections count, and that is said.
        """
        same_kind = self.pooled(change, base, questions)
        if same_kind is not None and same_kind.has_enough_collections:
            return same_kind, f"{same_kind.collections} other collections with {WORDS[questions]}"
        pooled = self.pooled(change, base)
        if pooled is None or not pooled.has_enough_collections:
            return None
        few = len(self.rows(change, base, questions))
        return pooled, f"{pooled.collections} other collections ({few or 'none'} of them with {WORDS[questions]})"

    def typical_sd(self, change: str, base: str) -> float:
        """The usual standard deviation of the differences by topic."""
        frame = self.rows(change, base)
        weights = frame["topics"].to_numpy(dtype=float)
        variances = frame["error"].to_numpy() ** 2 * weights
        return float((weights @ variances / weights.sum()) ** 0.5)

    def moderators(self, change: str, base: str = BASE) -> list[Moderator]:
        """How the effect of a change varies with the properties of collections."""
        import numpy as np

        frame = self.rows(change, base)
        if len(frame) < minimums.COLLECTIONS:
            return []
        properties: dict[str, Sequence[float]] = {
            name: np.log1p(frame[name]).tolist() if name in _LOGARITHMIC else frame[name].tolist()
            for name in _MODERATORS
        }
        properties["real user questions"] = (frame["questions"] == "people").astype(float).tolist()
        errors = meta.steadied(frame["error"].to_numpy(), frame["topics"].to_numpy())
        return meta.moderate(frame["effect"].tolist(), errors.tolist(), properties)

    def changes(self, base: str = BASE) -> list[str]:
        """The changes that were measured against a base, in the order of `changes.yaml`, others last."""
        from ragbench.extras.atlas import changes

        names = {change for group_base, change in self._by_change if group_base == base}
        order = [name for name in changes.changes() if name in names]
        return [*order, *sorted(names - set(order))]


def pooled(rows: pd.DataFrame) -> Pooled:
    """Rows of effects pooled, a row per collection."""
    return meta.pool(rows["effect"].to_numpy(), meta.steadied(rows["error"].to_numpy(), rows["topics"].to_numpy()))


WORDS = {"people": "user queries", "authors": "queries in the authors' words", "derived": "synthetic queries"}


def own_folder() -> Path:
    """Where this user's own measurements are kept."""
    return locations.state() / "atlas"


def effects_of(collection: str, values: pd.DataFrame) -> list[dict[str, Any]]:
    """The effects of one collection: `values` has one row per topic and one column per change, no value missing.

    Everything is compared with `BASE`, what stands in `BASES` or begins with a preset also with the other bases.
    """
    from ragbench.extras.atlas.changes import changes

    rows = []
    for base in (base for base in BASES if base in values):
        for change in values:
            preset = changes().get(str(change), "").split() == [f"exp={change}"]
            related = base == BASE or preset or (base == "recommended" and str(change).startswith("recommended"))
            if change == base or not related:
                continue
            gains = (values[change] - values[base]).to_numpy(dtype=float, copy=True)
            gains[abs(gains) < 1e-9] = 0.0
            error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
            row = (collection, base, str(change), len(gains), values[change].mean(), gains.mean(), error)
            counted = (int((gains > 0).sum()), int((gains < 0).sum()))
            rows.append(dict(zip(EFFECT_COLUMNS, (*row, *counted), strict=True)))
    return rows


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_csv(path, dtype={name: kind for name, kind in _TEXTS.items() if name in columns})
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read ({error}): remove it, and add the runs again") from None
    if list(frame.columns) != list(columns):
        raise ResultsError(f"{path} has other columns than {', '.join(columns)}: remove it, and add the runs again")
    return frame
