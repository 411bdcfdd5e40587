"""The atlas as a screen and as tables; every number comes from its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragbench.base import minimums
from ragbench.base.formatting import interval, with_interval
from ragbench.extras.atlas.changes import BASE
from ragbench.extras.atlas.tables import QUESTIONS, WORDS, Atlas

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.extras.atlas.meta import Pooled

_NAMES = 27


def effects_table(atlas: Atlas, base: str = BASE, questions: str | None = None) -> pd.DataFrame:
    """A row for every change: how many collections, where it helped, the pooled effect and the prediction."""
    import pandas as pd

    rows = []
    for change in atlas.changes(base):
        pooled = atlas.pooled(change, base, questions)
        if pooled is None:
            continue
        topics = int(atlas.rows(change, base, questions)["topics"].sum())
        new = (pooled.predicted_low, pooled.predicted_high) if pooled.has_enough_collections else (None, None)
        effect = (pooled.effect, pooled.low, pooled.high, pooled.tau, pooled.i2)
        rows.append((change, pooled.collections, topics, pooled.helps, *effect, *new))
    columns = ("change", "collections", "topics", "helps", "effect", "low", "high", "tau", "i2", "new_low", "new_high")
    return pd.DataFrame(rows, columns=list(columns))


def lines(frame: pd.DataFrame) -> list[str]:
    """The rows of `known` as lines of 80 columns."""
    rows = [f"{'change':{_NAMES}} gains      mean [95% CI]          new collection [95% PI]"]
    for row in frame.to_dict(orient="records"):
        enough = row["collections"] >= minimums.COLLECTIONS
        new = interval(row["new_low"], row["new_high"]) if enough else "-"
        mean = with_interval(row["effect"], row["low"], row["high"]) if enough else "-"
        rows.append(f"{row['change']:{_NAMES}} {row['helps']:2d} of {row['collections']:2d}   {mean:22} {new}")
    return rows


def by_collection(atlas: Atlas, change: str, base: str = BASE, questions: str | None = None) -> pd.DataFrame:
    """The effect of a change on every collection with its interval, the pooled effect last."""
    import pandas as pd

    frame = atlas.rows(change, base, questions, learned=True)
    counted = set(atlas.rows(change, base, questions)["collection"])
    rows = [
        {
            "collection": row["collection"],
            "topics of": row["questions"],
            "topics": row["topics"],
            "effect": row["effect"],
            "low": row["effect"] - 1.959964 * row["error"],
            "high": row["effect"] + 1.959964 * row["error"],
            "": "" if row["collection"] in counted else "ranker trained on it",
        }
        for row in frame.sort_values(["questions", "collection"]).to_dict(orient="records")
    ]
    if pooled := atlas.pooled(change, base, questions):
        ends = {"effect": pooled.effect, "low": pooled.low, "high": pooled.high}
        rows.append({"collection": "pooled", "topics of": "", "topics": frame["topics"].sum(), **ends, "": ""})
    return pd.DataFrame(rows)


def kinds(atlas: Atlas, change: str, base: str = BASE) -> list[str]:
    """The pooled effect by the kind of topics, a line each."""
    sentences = []
    for kind in QUESTIONS:
        if pooled := atlas.pooled(change, base, kind):
            few = "" if pooled.has_enough_collections else f", fewer than {minimums.COLLECTIONS}: no conclusion"
            sentences.append(f"{WORDS[kind]}: {_pooled_text(pooled)} on {pooled.collections} collections{few}")
    return sentences


def moderators(atlas: Atlas, change: str, base: str = BASE) -> list[str]:
    """What the effect varies with, a line for every property whose interval is not around 0."""
    significant = [each for each in atlas.moderators(change, base) if each.low > 0 or each.high < 0]
    return [
        f"varies with {effect.name.replace('_', ' ')}: {with_interval(effect.slope, effect.low, effect.high)} "
        "for one standard deviation more"
        for effect in significant
    ]


def _pooled_text(pooled: Pooled) -> str:
    """`+0.055 [+0.036, +0.074]`."""
    return with_interval(pooled.effect, pooled.low, pooled.high)
