"""What several parts of a report need: the rows of a table, and effects by query type or area."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ragbench.evidence import table
from ragbench.evidence.policy import Policy

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

JUDGED = "Judged@10"


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as mappings from column to value."""
    names = [str(name) for name in frame.columns]
    # Reading by columns takes a third of the time of `to_dict(orient="records")`.
    columns = [frame[name].tolist() for name in frame.columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def by_kind(results: Measurements, of: Literal["type", "area"] = "type") -> pd.DataFrame:
    """Every query type, or area of the collection, and arm against the first arm: see `evidence.table.by_type`."""
    first = results.arms[0]
    chosen = Policy.of(results.config(first))
    reference = results.values(first, chosen.measure)
    if not len(reference):
        return table.TYPES.frame()
    of_topic = results.topics.set_index("qid")[of].reindex(reference.index)
    values = {arm: results.values(arm, chosen.measure).reindex(reference.index) for arm in results.arms}
    return table.by_type(values, first, list(of_topic), chosen)
