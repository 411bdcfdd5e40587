"""Tables in memory as runs: data frames, mappings and lists with the column names of PyTerrier, ranx, BEIR and TREC."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragbench.base.errors import BenchmarkError
from ragbench.benchmark.documents import IDS, identifier

QIDS = ("qid", "query_id", "query-id", "q_id", "topic")
DOCNOS = ("docno", "doc_id", "corpus-id", "document_id", "docid", "pid")
SCORES = ("score", "sim", "similarity")


def is_run(value: Any) -> bool:
    """Whether a value is a table of results: a data frame, a mapping by qid, or a run of ranx."""
    return (
        isinstance(value, Mapping)
        or is_frame(value)
        or (callable(getattr(value, "to_dict", None)) and hasattr(value, "keys"))
    )


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame, of pandas or Polars."""
    return hasattr(value, "columns") and hasattr(value, "shape")


def _of_ranx(value: Any) -> bool:
    return callable(getattr(value, "to_dict", None)) and callable(getattr(value, "keys", None))


def read_run_table(table: Any, what: str) -> dict[str, list[tuple[str, float]]]:
    """The hits of a table by qid; `what` names it in messages. Raises BenchmarkError for one that is not a run.

    A frame or list of rows has a qid, a docno, and a score or rank. A mapping has, by qid, scores by docno, pairs or
    docnos, best first.
    """
    run: dict[str, dict[str, float]] = {}
    for qid, docno, score in _scored(table, what):
        hits = run.setdefault(identifier(qid), {})
        if (name := identifier(docno)) in hits:
            raise BenchmarkError(f"{what} returns {name} for {qid} again: a run names each document once for a query")
        hits[name] = score
    if not run:
        raise BenchmarkError(f"{what} has no rows: give a table with qid, docno and score")
    return {qid: list(hits.items()) for qid, hits in run.items()}


def _scored(table: Any, what: str) -> Iterator[tuple[Any, Any, float]]:
    table = table.to_dict() if _of_ranx(table) and not is_frame(table) else table
    if isinstance(table, Mapping):
        for qid, hits in table.items():
            named = isinstance(hits, Mapping)
            for rank, hit in enumerate(hits.items() if named else hits):
                docno, score = hit if isinstance(hit, (tuple, list)) and len(hit) == 2 else (hit, -float(rank))
                yield qid, docno, number(score, f"{what}: the score of {docno} for {qid}")
        return
    rows = rows_of(table, what)
    for place, row in enumerate(rows):
        qid, docno = (value_of(row, names, what) for names in (QIDS, (*DOCNOS, *IDS)))
        score = next((row[name] for name in SCORES if name in row), None)
        if score is None:
            score = -row["rank"] if "rank" in row else -float(place)
        yield qid, docno, number(score, f"{what}: the score of {docno} for {qid}")


def rows_of(table: Any, what: str) -> Iterable[Mapping[str, Any]]:
    """The rows of a data frame, or of an iterable of mappings and named tuples."""
    if is_frame(table):
        made = table.to_dicts() if hasattr(table, "to_dicts") else table.to_dict("records")
        return [{str(key): value for key, value in row.items()} for row in made]
    if not isinstance(table, Iterable) or isinstance(table, (str, bytes)):
        raise BenchmarkError(f"{what} is a {type(table).__name__}: give a DataFrame, a dict or a list of dicts")
    return [_row(each, what) for each in table]


def _row(value: Any, what: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    raise BenchmarkError(f"{what} has the row {value!r:.60}: give rows as dicts or a DataFrame")


def value_of(row: Mapping[str, Any], names: Iterable[str], what: str) -> Any:
    """The first of these fields that a row has. Raises BenchmarkError for a row without one."""
    names = tuple(names)
    for name in names:
        if name in row and row[name] is not None:
            return row[name]
    raise BenchmarkError(f"{what} has no column {names[0]}, only {', '.join(map(str, row))}: rename one")


def number(value: Any, what: str) -> float:
    """A finite number. Raises BenchmarkError for anything else."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise BenchmarkError(f"{what} is {value!r:.40}, which is not a number") from None
    if math.isnan(found):
        raise BenchmarkError(f"{what} is not a number (NaN): remove the row, or give a score")
    return found
