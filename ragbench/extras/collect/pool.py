"""Pooling: the unjudged section-query pairs that runs return, as a table for an annotator to fill in.

Depth-k pooling after Sparck Jones and van Rijsbergen (1975), as TREC does it. The table says neither which system found
a section nor at what rank, so that it cannot influence the judge.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbench.base import files
from ragbench.base.types import BenchmarkError, ConfigError, Document, Section, counted
from ragbench.benchmark.benchmark import Benchmark, Qrels, docno_of_section
from ragbench.benchmark.lines import read_table, write_atomically
from ragbench.benchmark.runs import Run
from ragbench.boundary.json import read_json_file

COLUMNS = ("qid", "query", "need", "path", "section", "heading", "text", "grade", "note")


@dataclass(frozen=True)
class PoolRow:
    """An unjudged pair; `best_rank` is its best rank over the runs, from 1, `n_runs` how many runs return it."""

    qid: str
    section: str
    best_rank: int
    n_runs: int


def pool(runs: Mapping[str, Run], qrels: Qrels, depth: int = 20, by_topic: bool = False) -> list[PoolRow]:
    """The pairs in the first `depth` of any run that `qrels` does not judge.

    Best first: by best rank, then by the number of runs, then by qid and section; so the first n rows of the table are
    the n most useful to judge. `by_topic` keeps the pairs of a topic together instead, which is easier for a judge who
    grades all of them.
    """
    if depth < 1:
        raise ConfigError(f"depth must be at least 1, got {depth}")
    ranks: dict[tuple[str, str], tuple[int, int]] = {}
    for run in runs.values():
        for qid, ranked in run.items():
            judged = qrels.get(qid, {})
            for rank, (section, _) in enumerate(ranked[:depth], start=1):
                if section not in judged:
                    best, n = ranks.get((qid, section), (rank, 0))
                    ranks[qid, section] = (min(best, rank), n + 1)
    rows = [PoolRow(qid, section, best, n) for (qid, section), (best, n) in ranks.items()]
    return sorted(rows, key=lambda r: (r.qid if by_topic else "", r.best_rank, -r.n_runs, r.qid, r.section))


def write_pool(
    path: Path, rows: Iterable[PoolRow], benchmark: Benchmark, snippet_chars: int = 1500, replace: bool = False
) -> int:
    """Write the rows as CSV with the columns of `COLUMNS`, the grade empty; returns how many.

    `path` is that of the document's file; `text` is the section without its heading, cut after `snippet_chars`. Raises
    BenchmarkError for a topic or section that is not in the benchmark, and for an existing file with grades that the
    benchmark does not have, unless `replace`.
    """
    if not replace and path.exists():
        qrels, grades = benchmark.section_qrels, read_pool(path).rows
        merged = [str(qrels.get(row["qid"], {}).get(row["section"])) for row in grades]
        if lost := sum(
            row["grade"].strip() not in ("", merged_grade) for row, merged_grade in zip(grades, merged, strict=True)
        ):
            raise BenchmarkError(
                f"{path} has {counted(lost, 'grade')} that would be lost: merge it and name the judgments with "
                "data.qrels, or write another file"
            )
    topics = {topic.qid: topic for topic in benchmark.topics}
    documents = {document.docno: document for document in benchmark.documents}
    written = []
    for row in rows:
        if row.qid not in topics:
            raise BenchmarkError(
                f"the runs answer topic {row.qid}, which is not in '{benchmark.name}': pool runs on its topics"
            )
        document, section = _section(row.section, documents, benchmark.name)
        topic = topics[row.qid]
        text = _snippet(document, section, snippet_chars)
        heading = " > ".join(section.path) or document.title
        written.append([row.qid, topic.text, topic.need, document.path, row.section, heading, text, "", ""])
    write_atomically(path, to_csv(COLUMNS, written))
    return len(written)


def write_source(path: Path, benchmark: Benchmark, config: Mapping[str, Any]) -> None:
    """Record the source of a pool next to it: the benchmark's name and digests, and the data settings that read it."""
    digests = {"collection": benchmark.collection, "questions": benchmark.questions}
    source = {"benchmark": benchmark.name, **digests, "data": config["data"], "topics": config["topics"]}
    files.write_text(_source_of(path), json.dumps(source, indent=1))


def read_source(path: Path) -> dict[str, Any] | None:
    """The record of `write_source`; None where there is none. BenchmarkError for a file that cannot be read."""
    file = _source_of(path)
    if not file.is_file():
        return None
    try:
        pool_record = dict(read_json_file(file))
        return {name: pool_record[name] for name in ("benchmark", "collection", "questions", "data", "topics")}
    except (OSError, ValueError, KeyError, TypeError):
        raise BenchmarkError(f"{file} cannot be read: remove it and name the data with data=") from None


@dataclass(frozen=True)
class PoolFile:
    """A pool as it stands in a file: columns in their order, the separator, and (line, row by column) of the pairs."""

    columns: tuple[str, ...]
    separator: str
    rows: list[dict[str, str]]
    lines: tuple[int, ...]

    def write(self, path: Path, rows: Iterable[Mapping[str, str]], more: Iterable[str] = ()) -> None:
        """Write rows with the columns of this pool and `more`."""
        columns = tuple(dict.fromkeys((*self.columns, *more)))
        write_atomically(path, to_csv(columns, ([row[name] for name in columns] for row in rows), self.separator))


def read_pool(path: Path) -> PoolFile:
    """Read a pool that ragbench wrote or a spreadsheet saved. BenchmarkError with the line where it is not a pool."""
    header, separator, records = read_table(path)
    columns = tuple(name.strip().lower() for name in header)
    absent = [name for name in ("qid", "section", "grade") if name not in columns]
    if absent:
        raise BenchmarkError(f"{path} is not a pool: it has no column '{absent[0]}'; write one with ragbench data pool")
    rows: list[dict[str, str]] = []
    lines: dict[tuple[str, str], int] = {}
    for number, cells in records:
        row = dict.fromkeys((*columns, *COLUMNS), "") | dict(zip(columns, cells, strict=False))
        pair = row["qid"].strip(), row["section"].strip()
        if not all(pair):
            raise BenchmarkError(f"{path}:{number} lacks a qid or a section: restore the row")
        if pair in lines:
            raise BenchmarkError(f"{path}:{number} has {pair[1]} for {pair[0]} again (first in line {lines[pair]})")
        lines[pair] = number
        rows.append(row)
    return PoolFile(columns, separator, rows, tuple(lines.values()))


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[str]], separator: str = ",") -> str:
    """Columns and rows as CSV with LF line ends."""
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator="\n").writerows([columns, *rows])
    return buffer.getvalue()


def _source_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.source.json")


def _section(section_id: str, documents: Mapping[str, Document], name: str) -> tuple[Document, Section]:
    document = documents.get(docno_of_section(section_id))
    anchor = section_id.rpartition("#")[2]
    section = next((section for section in document.sections if section.anchor == anchor), None) if document else None
    if document is None or section is None:
        raise BenchmarkError(f"'{name}' has no section '{section_id}': pool section-level runs on this collection")
    return document, section


def _snippet(document: Document, section: Section, limit: int) -> str:
    text = document.text[section.start : section.end]
    if section.level:
        text = text.partition("\n")[2]
    text = text.strip()
    return text if len(text) <= limit else f"{text[:limit].rstrip()} ..."
