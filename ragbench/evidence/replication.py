"""Do the effects on one collection repeat on another? The same changes in several runs, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from ragbench.base import fewest
from ragbench.base.columns import Columns
from ragbench.base.errors import ResultsError

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = Columns.of("first", "second", "changes", "rank_correlation", "same_sign", "sure", "sure_alike")


def effects(verdicts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for every change that all runs measured, in the order of the first run.

    `verdicts` holds a verdict table by the name of its run; the columns are `change` and, for every run, its name
    followed by ` effect`, ` low`, ` high` (documents). Raises ResultsError where fewer than two runs share changes.
    """
    import pandas as pd

    if len(verdicts) < 2:
        raise ResultsError("effects are compared between runs over different collections: name two runs or more")
    tables = {name: frame[frame["kind"] == "main"].set_index("factor") for name, frame in verdicts.items()}
    first = next(iter(tables.values()))
    shared = [factor for factor in first.index if all(factor in table.index for table in tables.values())]
    if len(shared) < fewest.SHARED:
        raise ResultsError(
            f"the runs share {len(shared)} changes by name, and {fewest.SHARED} are needed: "
            "run the same ablation on each"
        )
    found = {"change": shared}
    for name, table in tables.items():
        for column, ending in (("effect", "effect"), ("ci_low", "low"), ("ci_high", "high")):
            found[f"{name} {ending}"] = table.loc[shared, column].tolist()
    return pd.DataFrame(found)


def agreement(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for every two runs of `effects`, with `_COLUMNS`: how well their effects agree.

    `rank_correlation` is Spearman's rho of the effects; `same_sign` the share of changes that both help or both harm;
    `sure` how many changes are significant in both (0 outside both intervals), `sure_alike` how many of these have the
    same sign.
    """
    names = [str(column).removesuffix(" effect") for column in frame.columns if str(column).endswith(" effect")]
    rows = []
    for one, other in combinations(names, 2):
        first, second = frame[f"{one} effect"], frame[f"{other} effect"]
        signs = [(frame[f"{name} low"] > 0).astype(int) - (frame[f"{name} high"] < 0) for name in (one, other)]
        sure = (signs[0] != 0) & (signs[1] != 0)
        rows.append(
            (
                *(one, other, len(frame)),
                float(first.rank().corr(second.rank())),
                float((first * second > 0).mean()),
                *(int(sure.sum()), int((sure & (signs[0] == signs[1])).sum())),
            )
        )
    return _COLUMNS.frame(rows)
