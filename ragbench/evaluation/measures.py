"""Measures of a run against judgments, by ir_measures, for every query.

Documents are scored by their best chunk; sections by the best chunk that overlaps them. Topics without a relevant
document take no part in the measures; for them `Silence` says whether the pipeline answered with nothing.
`Unjudged@10` is always there: an unjudged hit counts as not relevant, so it bounds how far a value may be too low.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragbench.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Qrels
    from ragbench.index.chunks import ChunkTable
    from ragbench.types import QueryState, Ranking

PRIMARY = "nDCG@10"
MEASURES = ("nDCG@5", PRIMARY, "RR", "R@10", "R@100", "P@5", "AP", "Success@1", "Judged@10")
SILENCE = "Silence"
UNJUDGED = "Unjudged@10"
"""Hits without a judgment among the first ten of a query, divided by ten: places left empty are not unjudged."""

Run = Mapping[str, Sequence[tuple[str, float]]]
"""By qid, (id, score) with strictly decreasing scores."""


def metric_name(measure: str) -> str:
    """A measure's name as MLflow accepts it: `ndcg_at_10`."""
    return measure.lower().replace("@", "_at_").replace("(", "_").replace(")", "").replace("=", "_").replace(",", "_")


def document_run(states: Iterable[QueryState], table: ChunkTable) -> dict[str, list[tuple[str, float]]]:
    """The run over documents: each by its best chunk."""
    return {state.query.qid: decreasing(_first(state.fused, lambda c: (table.docno(c),))) for state in states}


def section_run(states: Iterable[QueryState], table: ChunkTable) -> dict[str, list[tuple[str, float]]]:
    """The run over sections: each by the best chunk that overlaps it; those of one chunk in document order."""
    return {state.query.qid: decreasing(_first(state.fused, lambda c: table.section_ids[c])) for state in states}


def _first(ranking: Ranking | None, names: Callable[[int], Iterable[str]]) -> Iterable[tuple[str, float]]:
    best: dict[str, float] = {}
    if ranking is not None:
        for chunk, score in zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True):
            for name in names(chunk):
                best.setdefault(name, score)
    return best.items()


def decreasing(scored: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """The same order with scores that strictly decrease, so that no tool can break a tie its own way.

    They do so in single precision, in which trec_eval compares them.
    """
    result: list[tuple[str, float]] = []
    lowest = last = np.float32(-np.inf)
    for name, score in scored:
        value = np.float32(score)
        last = min(value, np.nextafter(last, lowest)) if result else value
        result.append((name, float(last)))
    return result


def evaluate(run: Run, qrels: Qrels, measures: Sequence[str] = MEASURES) -> pd.DataFrame:
    """One row per query and measure: qid, measure, value; `Unjudged@10` is added.

    Queries without a relevant judgment only have `Silence`.
    """
    import ir_measures
    import pandas as pd

    answerable = sorted(qid for qid in run if any(grade > 0 for grade in qrels.get(qid, {}).values()))
    judged = {qid: dict(qrels[qid]) for qid in answerable}
    scored = {qid: dict(run[qid]) or {"": 0.0} for qid in answerable}
    rows = [(qid, UNJUDGED, unjudged(run[qid], judged[qid])) for qid in answerable]
    for name in measures:
        if name == UNJUDGED:
            continue
        try:
            measure = ir_measures.parse_measure(name)
        except (NameError, ValueError, KeyError, SyntaxError):
            raise ConfigError(f"'{name}' is not a measure of ir_measures; examples: {', '.join(MEASURES)}") from None
        # One call for each: two variants of a measure in one call can be given each other's values.
        values = {value.query_id: float(value.value) for value in ir_measures.iter_calc([measure], judged, scored)}
        # Of no hits none lacks a judgment: an arm that falls silent is worse, not less judged.
        silence = 1.0 if name.startswith("Judged@") else 0.0
        rows += [(qid, name, values.get(qid, 0.0) if run[qid] else silence) for qid in answerable]
    silent = sorted(qid for qid in run if qid not in judged)
    rows += [(qid, SILENCE, float(not run[qid])) for qid in silent]
    return pd.DataFrame(rows, columns=["qid", "measure", "value"])


def unjudged(hits: Sequence[tuple[str, float]], grades: Mapping[str, int], depth: int = 10) -> float:
    """The hits among the first `depth` that have no judgment, divided by `depth`; from 0 to 1."""
    return sum(name not in grades for name, _ in hits[:depth]) / depth
