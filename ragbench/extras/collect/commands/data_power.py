"""`ragbench data power`: the smallest difference that a finished run can detect."""

from __future__ import annotations

import argparse
import math
from itertools import combinations

from ragbench.base import console

DESCRIPTION = "Show the smallest difference that a finished run can detect, for each pair of arms and each split."
EXAMPLES = """examples:
  ragbench data power                 the newest run
  ragbench data power results/runs/A
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The run, output options."""
    console.add_runs(parser, "?")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the run and print a row for each pair of arms."""
    import pandas as pd

    from ragbench.evaluation import measures
    from ragbench.evidence import statistics
    from ragbench.results import measurements
    from ragbench.workbench.runs import named_runs

    (source,), _ = named_runs(arguments.words, limit=1)
    measured = measurements.load(source)
    splits = sorted(measured.per_query["split"].unique())
    values = {(arm, split): measured.values(arm, measures.PRIMARY, split) for arm in measured.arms for split in splits}
    rows: list[tuple[str, str, str, int, float, float]] = []
    queries: list[int | None] = []
    for arm, second in combinations(measured.arms, 2):
        for split in splits:
            difference = values[arm, split] - values[second, split]
            sd = float(difference.std(ddof=1))
            detectable = statistics.minimum_detectable_effect(sd, len(difference)) if sd > 0 else float("nan")
            effect = abs(float(difference.mean()))
            needed = math.ceil(len(difference) * (detectable / effect) ** 2) if effect and sd > 0 else None
            rows.append((split, second, arm, len(difference), sd, detectable))
            queries.append(needed)
    table = pd.DataFrame(
        rows, columns=["split", "arm", "other", "n", "sd of differences", f"detectable {measures.PRIMARY}"]
    )
    table["queries for the effect"] = pd.Series(queries, dtype=object)
    if arguments.json:
        console.print_json(table)
        return 0
    table.columns = [
        "split",
        "arm",
        "compared with",
        "queries",
        "SD of differences",
        f"MDE in {measures.PRIMARY}",
        "queries to show the effect",
    ]
    if not rows:
        print("a run of one arm has no differences: run two, such as ragbench run -m exp=baseline,recommended")
        return 0
    console.print_table(table, "Minimum detectable effect (MDE) at 80% power, alpha 5%, two-sided")
    if table[f"MDE in {measures.PRIMARY}"].isna().any():
        print("without an MDE, no query differs between the two arms: compare arms whose results differ")
    print("half of an MDE needs four times as many queries; the last column is for the effect that the run found")
    return 0
