"""Where relevant sections and topics were lost, in words, and what could still be gained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragbench.base.console import SCREEN, print_table, print_text
from ragbench.evaluation import headroom
from ragbench.evaluation.diagnosis import FOUND, losses, unit
from ragbench.evaluation.headroom import DEPTHS, RECALL, TOGETHER, VALUE

if TYPE_CHECKING:
    import pandas as pd

_HEADROOM_TITLES = {
    "topics": "queries",
    "lost": "queries lost",
    "ordering": "gain by ranking",
    "depth": "gain by depth",
    "retrieval": "gain by retrieval",
}


def sentences(fates: pd.DataFrame) -> list[str]:
    """The losses in words: `dropped (p10): 31 of 74 relevant sections`."""
    relevant = fates.groupby("arm").size().to_dict()
    lines, relevant_units = [], f"relevant {unit(fates)}"
    for row in losses(fates).to_dict(orient="records"):
        if row["outcome"] != FOUND:
            change = f"{row['outcome']} ({row['stage']})"
            lines.append(f"{row['arm']}: {change}: {row['sections']} of {relevant[row['arm']]} {relevant_units}")
    return lines


def lost_topics(frame: pd.DataFrame) -> pd.DataFrame:
    """Where the topics without a relevant document in the first 10 were lost: arm, outcome, stage, topics, share."""
    counts = frame.groupby(["arm", "outcome", "stage"], sort=False).size().rename("topics").reset_index()
    counts["share"] = counts["topics"] / counts["arm"].map(frame.groupby("arm").size())
    lost = counts[counts["outcome"] != FOUND]
    return lost.sort_values(["arm", "topics"], ascending=[True, False], kind="stable").reset_index(drop=True)


def show_headroom(gains: pd.DataFrame) -> None:
    """Print the headroom of ranking and retrieval to each arm, and where topics were lost."""
    summary = headroom.summary(gains)[_table_columns(gains)].rename(columns=_HEADROOM_TITLES)
    summary.columns = [str(name).replace("oracle_", "oracle top ").replace(":", " ") for name in summary.columns]
    print_table(summary, "Oracle gain (headroom) in nDCG@10, by documents", {"queries lost": ".1%"}, SCREEN)
    lost = lost_topics(gains)
    if len(lost):
        print_table(
            lost.rename(columns=_HEADROOM_TITLES),
            "Queries without a relevant document among the first 10",
            {"share": ".1%"},
            SCREEN,
        )
    print_text(*headroom.sentences(gains), in_pipe=SCREEN)


def _table_columns(frame: pd.DataFrame) -> Sequence[str]:
    """The columns of `summary`, in the order to show them in."""
    gains = ("ordering", "depth", "retrieval", "lost")
    oracles = [f"oracle_{depth}" for depth in DEPTHS]
    return [
        "arm",
        "topics",
        VALUE,
        *oracles,
        *gains,
        *(f"{RECALL}{name}" for name in headroom.sources(frame)),
        TOGETHER,
    ]
