"""What every source of an arm found before fusion, by document: stored with a run, to compare fusions later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ragbench.base.columns import Columns
from ragbench.evaluation.measures import document_run

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.index.chunks import ChunkTable
    from ragbench.search.engine.executor import Outcome

COLUMNS = Columns.of("qid", "source", "docno", "score")

SourceRuns = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By source and qid, the score of every document that the source returned, best first."""


def frame(outcome: Outcome, table: ChunkTable) -> pd.DataFrame:
    """One row for every document a source found for a query, each by its best chunk, best first.

    No rows where nothing was fused.
    """
    from dataclasses import replace

    before = next((states for states in outcome.states if any(state.fused is not None for state in states)), ())
    sources = sorted({source for state in before for source in state.rankings})
    rows = [
        (qid, source, docno, score)
        for source in sources
        for qid, hits in document_run(
            [replace(state, fused=state.rankings[source]) for state in before if source in state.rankings], table
        ).items()
        for docno, score in hits
    ]
    return COLUMNS.frame(rows).astype({"qid": "category", "source": "category"})


def read(found: pd.DataFrame) -> SourceRuns:
    """The inverse of `frame`."""
    runs: dict[str, dict[str, dict[str, float]]] = {}
    for (source, qid), rows in found.groupby(["source", "qid"], observed=True, sort=True):
        runs.setdefault(str(source), {})[str(qid)] = dict(zip(rows["docno"], rows["score"].astype(float), strict=True))
    return runs
