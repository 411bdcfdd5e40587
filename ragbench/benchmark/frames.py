"""Tables in memory as runs and benchmarks, with the column names of PyTerrier, ranx, BEIR, ir_datasets and TREC."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ragbench.base.types import BenchmarkError, Document
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.documents import IDS, TEXTS, collect, make_document
from ragbench.benchmark.judgments import assemble
from ragbench.benchmark.lines import identifier
from ragbench.benchmark.runs import warn_of_distances

_LOG = logging.getLogger(__name__)

_QIDS = ("qid", "query_id", "query-id", "q_id", "topic")
_DOCNOS = ("docno", "doc_id", "corpus-id", "document_id", "docid", "pid")
_SCORES = ("score", "sim", "similarity")
_DISTANCES = ("distance", "dist", "_distance")
_GRADES = ("label", "relevance", "rel", "grade", "qrel", "score")
_QUERIES = ("query", "text", "title", "question")


def from_frames(documents: Any, queries: Any, qrels: Any, name: str, markdown: bool = False) -> Benchmark:
    """The benchmark of three tables, or of one dataset of PyTerrier or ir_datasets. Raises BenchmarkError.

    A table is a data frame, a list of dicts, or a mapping by id: `{docno: text}`, `{qid: text}`,
    `{qid: {docno: grade}}`. Queries may have a split; without one all are test topics.
    """
    if queries is None and qrels is None:
        documents, queries, qrels = _of_dataset(documents)
    read, warnings = collect(_documents(documents, markdown), "documents", markdown)
    grades = read_qrels_table(qrels)
    topics: dict[str, Topic] = {}
    for number, row in enumerate(_rows_by_id(queries, "qid", "query", "queries"), start=1):
        location = f"queries, row {number}"
        qid, text = identifier(_value_of(row, (*_QIDS, *IDS), location)), _value_of(row, _QUERIES, location)
        if not isinstance(text, str) or not text.strip():
            raise BenchmarkError(f"{location}: query {qid} is empty: give it a text or remove it")
        if qid in topics:
            raise BenchmarkError(f"{location} repeats query id '{qid}': ids must be unique")
        fields = {key: row[key] for key in ("type", "split", "need", "group") if isinstance(row.get(key), str)}
        topics[qid] = Topic(qid, text.strip(), **fields)
    by_split: dict[str, dict[str, dict[str, int]]] = {}
    for qid, judged in grades.items():
        by_split.setdefault(topics[qid].split if qid in topics else "test", {})[qid] = judged
    return assemble(name, read, topics.values(), by_split, None, "qrels", warnings)


def _documents(table: Any, markdown: bool) -> Iterator[tuple[str, Document]]:
    for number, row in enumerate(_rows_by_id(table, "docno", "text", "documents"), start=1):
        location = f"documents, row {number}"
        docno = identifier(_value_of(row, (*_DOCNOS, *IDS), location))
        text = _value_of(row, TEXTS, location)
        if not isinstance(text, str):
            raise BenchmarkError(f"{location}: the text of {docno} is {text!r:.40}: give a text")
        title = row.get("title")
        yield location, make_document(docno, title if isinstance(title, str) else "", text, {}, markdown)


def read_qrels_table(table: Any) -> dict[str, dict[str, int]]:
    """Judgments by qid and docno, of a data frame, a list of dicts, a mapping or ranx. Raises BenchmarkError."""
    table = table.to_dict() if _of_ranx(table) else table
    if isinstance(table, Mapping):
        rows = [(qid, *judged) for qid, grades in table.items() for judged in _graded(qid, grades)]
    else:
        names = (_QIDS, (*_DOCNOS, *IDS), _GRADES)
        rows = [tuple(_value_of(row, name, "qrels") for name in names) for row in _rows_of(table, "qrels")]
    qrels: dict[str, dict[str, int]] = {}
    for qid, docno, grade in rows:
        value = number(grade, f"qrels: the grade of {docno} for {qid}")
        if value != int(value):
            raise BenchmarkError(f"qrels: the grade of {docno} for {qid} is {value:g}: give a whole number")
        if qrels.setdefault(identifier(qid), {}).setdefault(identifier(docno), int(value)) != value:
            raise BenchmarkError(f"qrels: {docno} has two grades for {qid}: keep one of them")
    if not qrels:
        raise BenchmarkError("qrels has no rows: give a table with qid, docno and label")
    return qrels


def _graded(qid: Any, grades: Any) -> Iterable[tuple[Any, Any]]:
    """The documents that a mapping grades, or those of a list or set, which are relevant."""
    if isinstance(grades, Mapping):
        return grades.items()
    if isinstance(grades, (list, tuple, set, frozenset)) and all(isinstance(docno, (str, int)) for docno in grades):
        return [(docno, 1) for docno in grades]
    raise BenchmarkError(f"qrels: the judgments of {qid} are {grades!r:.40}: give grades by docno, or a list of docnos")


def _of_dataset(dataset: Any) -> tuple[Any, Any, Any]:
    """The tables of a dataset of PyTerrier or ir_datasets."""
    if hasattr(dataset, "get_corpus_iter"):
        return dataset.get_corpus_iter(verbose=False), dataset.get_topics(), dataset.get_qrels()
    if hasattr(dataset, "docs_iter"):
        return dataset.docs_iter(), dataset.queries_iter(), dataset.qrels_iter()
    raise BenchmarkError("give documents, queries and qrels, or one dataset of PyTerrier or ir_datasets")


def _rows_by_id(table: Any, key: str, text: str, label: str) -> Iterable[Mapping[str, Any]]:
    if isinstance(table, Mapping) and not _is_frame(table):
        return [
            {key: row_id, **(value if isinstance(value, Mapping) else {text: value})} for row_id, value in table.items()
        ]
    return _rows_of(table, label)


def is_run(value: Any) -> bool:
    """Whether a value is a table of results: a data frame, a mapping by qid, or a run of ranx."""
    return isinstance(value, Mapping) or _is_frame(value) or _of_ranx(value)


def _is_frame(value: Any) -> bool:
    """Whether a value is a data frame, of pandas or Polars."""
    return hasattr(value, "columns") and hasattr(value, "shape")


def _of_ranx(value: Any) -> bool:
    return not _is_frame(value) and hasattr(value, "to_dict") and hasattr(value, "keys")


def read_run_table(table: Any, label: str) -> dict[str, list[tuple[str, float]]]:
    """The hits of a table by qid; `label` names it in messages. Raises BenchmarkError for one that is not a run.

    A frame or list of rows has a qid, a docno, and a score or rank. A mapping has, by qid, scores by docno, pairs or
    docnos, best first.
    """
    run: dict[str, dict[str, float]] = {}
    for qid, docno, score in _scored(table, label):
        hits = run.setdefault(identifier(qid), {})
        if (name := identifier(docno)) in hits:
            raise BenchmarkError(f"{label} returns {name} for {qid} again: a run names each document once for a query")
        hits[name] = score
    if not run:
        raise BenchmarkError(f"{label} has no rows: give a table with qid, docno and score")
    return {qid: list(hits.items()) for qid, hits in run.items()}


def _scored(table: Any, label: str) -> Iterator[tuple[Any, Any, float]]:
    table = table.to_dict() if _of_ranx(table) else table
    if isinstance(table, Mapping):
        yield from _scored_by_query(table, label)
        return
    rows = _rows_of(table, label)
    by_query: dict[Any, list[float]] = {}
    for line_number, row in enumerate(rows):
        qid, docno = (_value_of(row, names, label) for names in (_QIDS, (*_DOCNOS, *IDS)))
        score = _score_of(row, line_number, f"{label}: the score of {docno} for {qid}")
        if any(row.get(name) is not None for name in _SCORES):
            by_query.setdefault(qid, []).append(score)
        yield qid, docno, score
    warn_of_distances(by_query.values(), label)


def _score_of(row: Mapping[str, Any], place: int, label: str) -> float:
    """The score of a row, else its negated distance or rank, else its negated `place` in the order given."""
    name = next((name for name in (*_SCORES, *_DISTANCES, "rank") if row.get(name) is not None), None)
    value = place if name is None else number(row[name], label)
    return value if name in _SCORES else -float(value)


def _scored_by_query(table: Mapping[Any, Any], label: str) -> Iterator[tuple[Any, Any, float]]:
    """The hits of a mapping: docnos and pairs keep their order, whatever their scores; scores by docno decide it."""
    by_docnos, kept = [], False
    for qid, hits in table.items():
        by_docno = isinstance(hits, Mapping)
        pairs = []
        for rank, hit in enumerate(hits.items() if by_docno else hits):
            docno, score = _pair(hit, rank, f"{label}: the hit {rank + 1} for {qid}")
            pairs.append((docno, number(score, f"{label}: the score of {docno} for {qid}")))
        scores = [score for _, score in pairs]
        grows = [one < other for one, other in pairwise(scores)]
        falls = all(one > other for one, other in pairwise(scores))
        kept |= not by_docno and any(grows)
        by_docnos += [scores] if by_docno else []
        for rank, (docno, score) in enumerate(pairs):
            yield qid, docno, score if by_docno or falls else -float(rank)
    if kept:
        _LOG.warning(f"{label}: its pairs are not in the order of their scores (distances?); their order is kept")
    warn_of_distances(by_docnos, label)


def _pair(hit: Any, rank: int, label: str) -> tuple[Any, Any]:
    """The docno and score of a hit: a pair, a dict, or a docno."""
    if isinstance(hit, Mapping):
        return _value_of(hit, (*_DOCNOS, *IDS), label), _score_of(hit, rank, label)
    if not isinstance(hit, (tuple, list)):
        return hit, -float(rank)
    if len(hit) != 2:
        raise BenchmarkError(f"{label} is {hit!r:.60}: give a docno, a pair of docno and score, or a dict")
    return hit[0], hit[1]


def _rows_of(table: Any, label: str) -> Iterable[Mapping[str, Any]]:
    """The rows of a data frame, or of an iterable of mappings and named tuples."""
    if _is_frame(table):
        records = table.to_dicts() if hasattr(table, "to_dicts") else table.to_dict("records")
        return [{str(key): value for key, value in row.items()} for row in records]
    if not isinstance(table, Iterable) or isinstance(table, (str, bytes)):
        raise BenchmarkError(f"{label} is a {type(table).__name__}: give a DataFrame, a dict or a list of dicts")
    return [_row(item, label) for item in table]


def _row(value: Any, label: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "_asdict"):
        fields = dict(value._asdict())
        if hasattr(value, "default_text") and not set(fields) & {*TEXTS, *_QUERIES}:
            fields["text"] = value.default_text()
        return fields
    raise BenchmarkError(f"{label} has the row {value!r:.60}: give rows as dicts or a DataFrame")


def _value_of(row: Mapping[str, Any], names: Sequence[str], label: str) -> Any:
    """The first of these fields that a row has. Raises BenchmarkError for a row without one."""
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise BenchmarkError(f"{label} has no column {names[0]}, only {', '.join(map(str, row))}: rename one")


def number(value: Any, label: str) -> float:
    """A finite number. Raises BenchmarkError for anything else."""
    try:
        parsed = float(value)
    except (TypeError, ValueError):
        raise BenchmarkError(f"{label} is {value!r:.40}, which is not a number") from None
    if math.isnan(parsed):
        raise BenchmarkError(f"{label} is not a number (NaN): remove the row, or give a score")
    return parsed
