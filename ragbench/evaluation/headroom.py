"""Headroom: what a better order of the hits, or better retrieval, could still gain for each arm.

An oracle puts the relevant ones of an arm's first documents on top: no ranking of them can gain more. What it still
lacks when it may take everything that a source found was never retrieved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ragbench.base.columns import Columns
from ragbench.evaluation.diagnosis import FOUND, Trail, trails
from ragbench.evaluation.measures import DEPTH, document_run, ndcg

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Qrels
    from ragbench.index.chunks import ChunkTable
    from ragbench.search.engine.executor import Outcome

_SOURCE_COLUMNS = Columns.of("qid", "source", "docno", "score")

SourceRuns = Mapping[str, Mapping[str, Mapping[str, float]]]

"""By source and qid, the score of every document that the source returned, best first."""

DEPTHS = (10, 20, 50)

VALUE, EVERYTHING, TOGETHER = "nDCG@10", "oracle_all", "recall:together"

RECALL = "recall:"

COLUMNS = Columns.of(
    *("arm", "qid", VALUE, *(f"oracle_{depth}" for depth in DEPTHS), EVERYTHING, TOGETHER, "outcome", "stage")
)


def headroom(outcome: Outcome, table: ChunkTable, qrels: Qrels) -> pd.DataFrame:
    """One row for every query with a relevant document, and the columns COLUMNS and `recall:SOURCE`.

    nDCG@10 of the documents as they are ranked, in the best order of the first 10, 20 and 50, and in the best order of
    everything that a source found; recall of each source and of all together; the stage at which the topic was lost,
    where no relevant document is among the first 10 (`outcome` and `stage` as in `ragbench.evaluation.diagnosis`).
    """
    import pandas as pd

    rows = []
    for trail in trails(outcome, table):
        grades = {
            table.document_number[docno]: float(grade)
            for docno, grade in qrels.get(trail.qid, {}).items()
            if grade > 0 and docno in table.document_number
        }
        if grades:
            rows.append({"arm": outcome.arm, "qid": trail.qid, **_of_query(trail, grades)})
    frame = pd.DataFrame(rows) if rows else COLUMNS.frame()
    return frame[[*COLUMNS, *(name for name in frame.columns if name not in COLUMNS)]]


def _of_query(trail: Trail, grades: Mapping[int, float]) -> dict[str, float | str]:
    ideal = list(grades.values())
    final = list(trail.stages[-1][1]) if trail.stages else []
    everything = set(final).union(*trail.sources.values())

    def best_order(documents: Iterable[int]) -> float:
        return ndcg(sorted((grades.get(document, 0.0) for document in documents), reverse=True), ideal)

    def recall(documents: Iterable[int]) -> float:
        return len(grades.keys() & set(documents)) / len(grades)

    outcome, stage, *_ = trail.outcome_of(list(grades), DEPTH)
    return {
        VALUE: ndcg([grades.get(document, 0.0) for document in final], ideal),
        **{f"oracle_{depth}": best_order(final[:depth]) for depth in DEPTHS},
        EVERYTHING: best_order(everything),
        TOGETHER: recall(everything),
        "outcome": outcome,
        "stage": stage,
        **{f"{RECALL}{name}": recall(ranks) for name, ranks in sorted(trail.sources.items())},
    }


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """By arm, the means of `headroom` and what could still be gained.

    `ordering`: by the best order of the first 50; `depth`: by what sources found beyond them; `retrieval`: by what no
    source found. With nDCG@10 they add up to 1. `lost`: the share of topics without a relevant document among the
    first 10.
    """
    means = frame.groupby("arm", sort=False).mean(numeric_only=True)
    means["ordering"] = means[f"oracle_{DEPTHS[-1]}"] - means[VALUE]
    means["depth"] = means[EVERYTHING] - means[f"oracle_{DEPTHS[-1]}"]
    means["retrieval"] = 1 - means[EVERYTHING]
    means["lost"] = (frame["outcome"] != FOUND).groupby(frame["arm"], sort=False).mean()
    means.insert(0, "topics", frame.groupby("arm", sort=False).size())
    return means.reset_index()


def sentences(frame: pd.DataFrame) -> list[str]:
    """A sentence for every arm: the headroom of ranking, depth and retrieval."""
    return [
        f"{row['arm']}: nDCG@10 is {row[VALUE]:.3f}; a perfect ranking of the top {DEPTHS[-1]} would gain "
        f"{signed(row['ordering'])}, lower results of the retrievers {signed(row['depth'])}, documents that no "
        f"retriever returned {signed(row['retrieval'])}"
        for row in summary(frame).to_dict(orient="records")
    ]


def sources(frame: pd.DataFrame) -> list[str]:
    """The sources whose recall is known."""
    return [str(name)[len(RECALL) :] for name in frame.columns if str(name).startswith(RECALL) and name != TOGETHER]


def signed(value: float) -> str:
    """A gain of nDCG without its zero: `+.21`."""
    return f"{value:+.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:+.2f}"


def source_frame(outcome: Outcome, table: ChunkTable) -> pd.DataFrame:
    """One row for every document a source found for a query, each by its best chunk, best first.

    No rows where nothing was fused.
    """
    from dataclasses import replace

    unfused = next((states for states in outcome.states if any(state.fused is not None for state in states)), ())
    sources = sorted({source for state in unfused for source in state.rankings})
    rows = [
        (qid, source, docno, score)
        for source in sources
        for qid, hits in document_run(
            [replace(state, fused=state.rankings[source]) for state in unfused if source in state.rankings], table
        ).items()
        for docno, score in hits
    ]
    return _SOURCE_COLUMNS.frame(rows).astype({"qid": "category", "source": "category"})
