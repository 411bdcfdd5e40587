"""Leaks: hits that do not meet the filter of their query, such as pages of another version, tenant or permission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragbench.evaluation.measures import DEPTH, DOCUMENT, LEAKS, Run

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.base.types import QueryState
    from ragbench.index.index import Index


def evaluate(states: Sequence[QueryState], run: Run, index: Index) -> pd.DataFrame:
    """qid, level, measure, value of the queries with a filter; `run` has the documents that were found.

    A hit of a live search that is in no document of the collection is not counted, because its metadata is unknown.
    """
    import pandas as pd

    filtered = [
        (state.query.qid, state.filters) for state in states if state.query.filter and state.filters is not None
    ]
    numbers = {docno: number for number, docno in enumerate(index.chunks.docnos)} if filtered else {}
    rows = []
    for qid, filters in filtered:
        found = [numbers[docno] for docno, _ in run[qid][:DEPTH] if docno in numbers]
        rows.append((qid, DOCUMENT, LEAKS, float((~index.passing(filters)[found]).sum())))
    return pd.DataFrame(rows, columns=["qid", "level", "measure", "value"])
