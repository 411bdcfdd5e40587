"""Do the effects of twelve changes on the built-in benchmark have the order that they have on real documentation?

    python -m tests.bench.atlas_transfer DIR      with the tables that `tools.atlas measure --out DIR` wrote

The collections that are shipped count with those in the folders; the built-in benchmark, `data=builtin_v21`, is one.
Spearman's correlation of the effects on `plain_hybrid` with those on the built-in benchmark, for every collection that
is documentation. Few topics measure an effect roughly: *at best* is the mean correlation that a collection would show
if its true effects were those of the built-in benchmark, and both were measured with the errors they have. Printed as
markdown, for docs/research/methods.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ragbench.base.console import markdown
from ragbench.extras.atlas import changes, meta
from ragbench.extras.atlas.tables import Atlas, pooled

FACTORS = ("p1", "p3", "p4", "p5", "p7", "p8", "p9", "p10", "p11", "p12", "community", "graph")
OURS, ABSTRACTS = "builtin_v21", "papers"
_DRAWS, _SEED = 2000, 13


def measured(atlas: Atlas) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Effects and steadied standard errors of the twelve, a row per collection that has all of them."""
    effects, errors = {}, {}
    for change in FACTORS:
        rows = atlas.rows(change).set_index("collection")
        effects[change] = rows["effect"]
        steadied = meta.steadied(rows["error"].to_numpy(), rows["topics"].to_numpy())
        errors[change] = pd.Series(steadied, index=rows.index)
    found = pd.DataFrame(effects).dropna()
    return found, pd.DataFrame(errors).loc[found.index]


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's: that of the ranks, equal values sharing theirs."""
    return float(pd.Series(one).rank().corr(pd.Series(other).rank()))


def agreement(atlas: Atlas) -> pd.DataFrame:
    """Topics, correlation with the built-in benchmark, and what is possible: a row for every real documentation."""
    effects, errors = measured(atlas)
    facts = atlas.collections.set_index("collection").loc[effects.index]
    ours, generator = effects.loc[OURS].to_numpy(), np.random.default_rng(_SEED)
    rows = []
    for name in effects.index[(facts["kind"] != ABSTRACTS) & (effects.index != OURS)]:
        drawn = ours + generator.normal(size=(2, _DRAWS, len(FACTORS))) * errors.loc[[OURS, name]].to_numpy()[:, None]
        best = np.mean([correlation(one, other) for one, other in zip(*drawn, strict=True)])
        rows.append(
            {
                "collection": name,
                "questions": facts.at[name, "questions"],
                "topics": str(facts.at[name, "topics"]),
                "correlation": correlation(ours, effects.loc[name].to_numpy()),
                "at best": float(best),
            }
        )
    return pd.DataFrame(rows)


def tables(folders: Sequence[Path]) -> Atlas:
    """The shipped tables and those in the folders; of a collection that is in several, the first."""
    found = [Atlas.load(folder) for folder in (Path(changes.__file__).parent, *folders)]
    known = pd.concat([each.collections for each in found]).drop_duplicates("collection")
    first = {name: each for each in reversed(found) for name in each.collections["collection"]}
    effects = [each.effects[each.effects["collection"] == name] for name, each in first.items()]
    return Atlas(pd.concat(effects, ignore_index=True), known)


def main(words: Sequence[str]) -> None:
    """Print the agreement by collection, by kind of topics and with the pooled effects, and the effects."""
    atlas = tables([Path(word) for word in words])
    frame = agreement(atlas)
    both = {"correlation": ".2f", "at best": ".2f"}
    means = frame.groupby("questions")[["correlation", "at best"]].agg("mean").reset_index(names="collection")
    every = pd.DataFrame([{"collection": "all", **frame[["correlation", "at best"]].mean()}])
    print(markdown(pd.concat([frame, means, every]).fillna({"questions": "", "topics": ""}), both))
    effects, _ = measured(atlas)
    shown = effects.loc[[OURS, *frame["collection"]]].T
    for kind, names in frame.groupby("questions")["collection"]:
        if len(names) > 1:
            mean = [pooled(rows[rows["collection"].isin(names)]).effect for rows in map(atlas.rows, FACTORS)]
            found = correlation(effects.loc[OURS].to_numpy(), np.array(mean))
            print(f"\nwith the effects pooled over the {len(names)} of {kind}: {found:.2f}")
            shown.insert(1, f"pooled, {kind}", mean)
    print(f"\n{markdown(shown.map(lambda value: f'{value:+.3f}').reset_index(names='change'))}")


if __name__ == "__main__":
    main(sys.argv[1:])
