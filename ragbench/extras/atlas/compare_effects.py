"""`ragbench compare --effects`: the same changes on several collections."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console, minimums
from ragbench.base.columns import Columns
from ragbench.base.errors import ConfigError, ResultsError
from ragbench.base.formatting import with_interval

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

_COLUMNS = Columns.of("first", "second", "changes", "rank_correlation", "same_sign", "sure", "sure_alike")


def compare(sources: Sequence[Path], arguments: argparse.Namespace) -> int:
    """Print the changes that every run measured, and how well the runs agree on them."""
    from ragbench.results import measurements, verdicts

    loaded: dict[str, Measurements] = {}
    for source in sources:
        if not source.is_dir():
            raise ConfigError(f"--effects takes runs with verdicts, got the file {source}")
        run = measurements.load(source)
        name = str(run.record["benchmark"]["name"])
        if name in loaded:
            raise ConfigError(f"--effects takes one run over each collection, got two over '{name}'")
        loaded[name] = run
    table = effects({name: verdicts.read(run) for name, run in loaded.items()})
    alike = agreement(table)
    if arguments.json:
        console.print_json({"effects": table, "agreement": alike})
        return 0
    columns = table[["change"]].assign(
        **{
            name: [
                with_interval(row[f"{name} effect"], row[f"{name} low"], row[f"{name} high"])
                for row in table.to_dict(orient="records")
            ]
            for name in loaded
        }
    )
    alike = alike.rename(columns=lambda name: str(name).replace("_", " "))
    if arguments.format == "csv":
        print(table.to_csv(index=False), end="")
    elif arguments.format != "table":
        to_text = console.markdown if arguments.format == "markdown" else console.latex
        print(to_text(columns), to_text(alike), sep="\n\n")
    else:
        console.print_table(columns, "Effects on documents, by collection")
        console.print_table(alike, "How well the collections agree on the changes")
    return 0


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
    if len(shared) < minimums.SHARED_ARMS:
        raise ResultsError(
            f"the runs share {len(shared)} changes by name, and {minimums.SHARED_ARMS} are needed: "
            "run the same ablation on each"
        )
    columns = {"change": shared}
    for name, table in tables.items():
        for column, ending in (("effect", "effect"), ("ci_low", "low"), ("ci_high", "high")):
            columns[f"{name} {ending}"] = table.loc[shared, column].tolist()
    return pd.DataFrame(columns)


def agreement(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for every two runs of `effects`, with `_COLUMNS`: how well their effects agree.

    `rank_correlation` is Spearman's rho of the effects; `same_sign` the share of changes that both help or both harm;
    `sure` how many changes are significant in both (0 outside both intervals), `sure_alike` how many of these have the
    same sign.
    """
    names = [str(column).removesuffix(" effect") for column in frame.columns if str(column).endswith(" effect")]
    rows = []
    for one, other_run in combinations(names, 2):
        first, second = frame[f"{one} effect"], frame[f"{other_run} effect"]
        signs = [(frame[f"{name} low"] > 0).astype(int) - (frame[f"{name} high"] < 0) for name in (one, other_run)]
        significant = (signs[0] != 0) & (signs[1] != 0)
        rows.append(
            (
                *(one, other_run, len(frame)),
                float(first.rank().corr(second.rank())),
                float((first * second > 0).mean()),
                *(int(significant.sum()), int((significant & (signs[0] == signs[1])).sum())),
            )
        )
    return _COLUMNS.frame(rows)
