"""Judgments in the formats of other tools, and the meaning of a collection's grades."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ragbench.base.types import BenchmarkError, ConfigError, Document, shown
from ragbench.benchmark.benchmark import Benchmark, Qrels, Topic
from ragbench.benchmark.lines import EXPECTED, identifier, name_of_field, read_lines
from ragbench.benchmark.quotes import entries

_MAX_GRADE = 1000
"""Larger grades are refused: evaluation tools reserve memory for every possible grade."""

Grades = Mapping[int, int | None]
"""The grade to use for each grade of the collection; None leaves the judgment out."""


UnknownTopics = Literal["fail", "warn"]
"""What to do with judgments of unknown topics: fail, or skip them and count them."""

_NUMBER = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_QUERY = {"query-id", "query_id", "qid", "topic", "query"}
_DOCUMENT = {"corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "docno", "document"}
GRADES = ("grade", "rating", "relevance", "rel", "label")
"""The names of the grade of an answer."""
_GRADE = {"score", *GRADES}


def parse_grade(text: str, location: str) -> int:
    """A grade as a whole number between -1000 and 1000; `2.0` is 2. A BenchmarkError names the `location`."""
    if not _NUMBER.fullmatch(text):  # int() also takes 1_0 and digits of other scripts
        raise BenchmarkError(f"{location}: grade '{text[:60]}' is not a whole number")
    value = float(text) if any(c in text for c in ".eE") else int(text)
    if value != value or abs(value) > _MAX_GRADE or value != int(value):
        raise BenchmarkError(f"{location}: grade '{text}' is not a whole number between -{_MAX_GRADE} and {_MAX_GRADE}")
    return int(value)


def graded_names(value: Any, location: str) -> Iterator[tuple[str, int]]:
    """The names in a field with their grades, 1 if it has none. Raises BenchmarkError for a value of another kind.

    A field holds a text (`entries`), a number, an object with a name and an optional grade, grades by name, or a list.
    """
    if isinstance(value, str):
        yield from ((name, 1) for name in entries(value))
    elif isinstance(value, list):
        for item in value:
            yield from [(item.strip(), 1)] if isinstance(item, str) and item.strip() else graded_names(item, location)
    elif isinstance(value, Mapping):
        named = [cell for key, cell in value.items() if name_of_field(key) in (*EXPECTED, "id", "ids")]
        if not named:
            yield from ((str(key), parse_grade(str(grade), f"{location}: {key}")) for key, grade in value.items())
            return
        grade = next((parse_grade(str(value[key]), location) for key in GRADES if value.get(key) is not None), 1)
        yield from ((of_name, grade) for of_name, _ in graded_names(next(filter(None, named), None), location))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value), 1
    elif value is not None:
        raise BenchmarkError(f"{location}: an expected page must be an id, a path or an address, got {shown(value)}")


def read_judgments(path: Path, grades: Grades | None = None) -> dict[str, dict[str, int]]:
    """Judgments by qid and document, from a table of three fields (BEIR, with header or without) or TREC's four.

    Fields are separated by tabs when the first line has any, else by blanks, or by `,` or `;`. With `grades` every
    grade of the file must be in it. Raises BenchmarkError with the line for a wrong number of fields, a grade that
    cannot be used, a pair judged twice differently.
    """
    qrels: dict[str, dict[str, int]] = {}
    for number, qid, target, cell in _rows(path):
        location = f"{path}:{number}"
        grade = mapped_grade(parse_grade(cell, location), grades, location)
        if grade is not None and qrels.setdefault(qid, {}).setdefault(target, grade) != grade:
            raise BenchmarkError(f"{location} judges {target} for {qid} again with another grade: keep one of them")
    return qrels


def mapped_grade(grade: int, grades: Grades | None, location: str) -> int | None:
    """The grade to use for a grade of the collection; None leaves the judgment out. BenchmarkError if not mapped."""
    if grades is None:
        return grade
    if grade not in grades:
        raise BenchmarkError(f"{location}: grade {grade} is missing from data.grades, which has {_in_words(grades)}")
    return grades[grade]


def require_topics(by_file: Mapping[Path, Qrels], qids: Collection[str]) -> None:
    """Raise BenchmarkError with file and line when a file judges a topic that is not among `qids`."""
    for path, qrels in by_file.items():
        unknown = {identifier(qid) for qid in qrels if qid not in qids}
        if unknown:
            number, qid = next((number, qid) for number, qid, _, _ in _rows(path) if qid in unknown)
            raise BenchmarkError(
                f"{path}:{number} judges topic '{qid}', which is not among the topics: correct the id, or leave the "
                f"judgments of such topics ({len(unknown)}) out with data.unknown_topics=warn"
            )


def _rows(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """(line number, qid, document, text of the grade) of every line but the header."""
    places: tuple[int, int, int] | None = None
    fields, separator = 0, None
    for number, line in read_lines(path):
        location = f"{path}:{number}"
        if places is None:
            # A TREC file may have commas in ids; a table has hardly any blanks in its header.
            usual = (sign for sign in ("\t", None, ",", ";") if len(_cells(line, sign)) in (3, 4))
            separator = next(usual, None)
            cells = _cells(line, separator)
            fields = len(cells)
            places, is_header = _places(cells, location)
            if is_header:
                continue
        cells = _cells(line, separator)
        if len(cells) != fields:
            raise BenchmarkError(f"{location} must have {fields} fields like the first line, got {len(cells)}")
        qid, target = identifier(cells[places[0]]), identifier(cells[places[1]])
        if not qid or not target:
            raise BenchmarkError(f"{location} lacks the id of a query or of a document")
        yield number, qid, target, cells[places[2]].strip()


def check_grades(grades: Mapping[Any, Any] | None) -> Grades | None:
    """A configured mapping of grades with whole numbers for keys and whole numbers or null for values."""
    if grades is None:
        return None
    checked: dict[int, int | None] = {}
    for key, value in grades.items():
        try:
            number = int(str(key))
        except ValueError:
            raise ConfigError(f"data.grades has the key {key!r}: its keys are whole numbers") from None
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or abs(value) > _MAX_GRADE):
            raise ConfigError(f"data.grades maps {key} to {value!r}: write a whole number, or null to remove it")
        checked[number] = value
    if not checked:
        raise ConfigError("data.grades is empty: map every grade of the collection, or set it to null")
    return checked


def convention(grades: Grades | None) -> str:
    """The mapping in words, for `Benchmark.version`."""
    return f"grades read as {_in_words(grades)}" if grades is not None else ""


def assemble(
    name: str,
    documents: Sequence[Document],
    topics: Iterable[Topic],
    by_split: Mapping[str, Qrels],
    grades: Grades | None,
    source: str,
    warnings: tuple[str, ...],
) -> Benchmark:
    """The benchmark of documents, topics and judgments; each topic belongs to the split that judges it.

    Skipped, with one warning for each kind: judgments of unknown topics and documents, topics without judgments,
    topics whose relevant documents are all missing. `source` opens every message. Raises BenchmarkError when a topic is
    judged in two splits or no topic is left.
    """
    listed = list(topics)
    split_of = _split_of_each(by_split, source)
    qrels = {qid: grades for of_split in by_split.values() for qid, grades in of_split.items()}
    qids, docnos = {topic.qid for topic in listed}, {document.docno for document in documents}
    known = {
        qid: {docno: grade for docno, grade in grades.items() if docno in docnos}
        for qid, grades in qrels.items()
        if qid in qids
    }
    kept = {
        qid: grades
        for qid, grades in known.items()
        if grades and (max(grades.values()) > 0 or max(qrels[qid].values()) <= 0)
    }
    chosen = tuple(replace(topic, split=split_of[topic.qid]) for topic in listed if topic.qid in kept)
    problems = _warnings(
        source,
        ([qid for qid in qrels if qid not in qids], "topic(s) with judgments but without text are excluded"),
        (
            [docno for qid in known for docno in qrels[qid] if docno not in docnos],
            "judgment(s) of documents that are not in the collection are excluded",
        ),
        (
            [qid for qid in known if qid not in kept],
            "topic(s) are skipped because none of their relevant documents is in the collection",
        ),
        ([topic.qid for topic in listed if topic.qid not in split_of], "topic(s) without judgments are excluded"),
    )
    negative = sum(grade < 0 for grades in known.values() for grade in grades.values())
    if negative:
        problems.append(
            f"{source}: {negative} negative grades count as not relevant; set data.grades if they mean otherwise"
        )
    if not chosen:
        raise BenchmarkError(f"{source}: no topic has both a text and a judgment: check that the ids are the same")
    return Benchmark(name, documents, chosen, kept, warnings=(*warnings, *problems), version=convention(grades))


def _split_of_each(by_split: Mapping[str, Qrels], source: str) -> dict[str, str]:
    """The split of every judged topic. Raises BenchmarkError for one that is judged in two."""
    split_of: dict[str, str] = {}
    for split, qrels in by_split.items():
        for qid in qrels:
            if split_of.setdefault(qid, split) != split:
                raise BenchmarkError(
                    f"{source}: topic {qid} is judged in both {split_of[qid]} and {split}: choose with data.qrels=FILE"
                )
    return split_of


def unknown_names(source: str, qrels: Qrels, qids: set[str], targets: set[str], kind: str) -> list[str]:
    """Warnings that count the judgments of unknown topics and of unknown documents or sections."""
    unknown = [qid for qid in qrels if qid not in qids]
    missing = [target for grades in qrels.values() for target in grades if target not in targets]
    return _warnings(
        source, (unknown, "topic(s) with judgments have no text"), (missing, f"judgment(s) of unknown {kind}")
    )


def _warnings(source: str, *kinds: tuple[Sequence[str], str]) -> list[str]:
    """A sentence for every kind that has names: how many, and the first three."""
    sentences = []
    for names, kind in kinds:
        different = list(dict.fromkeys(names))
        if names:
            more = " ..." if len(different) > 3 else ""
            sentences.append(f"{source}: {len(names)} {kind}: {', '.join(different[:3])}{more}")
    return sentences


def _cells(line: str, separator: str | None) -> list[str]:
    cells = line.split(separator)
    if separator in (",", ";"):
        with contextlib.suppress(csv.Error):  # then a field is missing
            cells = next(csv.reader([line], delimiter=separator or "", skipinitialspace=True))
    return [cell.strip() for cell in cells]


def _places(cells: Sequence[str], location: str) -> tuple[tuple[int, int, int], bool]:
    """The columns of query, document and grade, and whether the line is a header."""
    if len(cells) not in (3, 4):
        raise BenchmarkError(
            f"{location} must have three fields (query-id corpus-id score) or four (qid 0 docno grade), "
            f"got {len(cells)}"
        )
    usual = (0, 1, 2) if len(cells) == 3 else (0, 2, 3)
    try:
        float(cells[usual[2]])
    except ValueError:
        names = [cell.lower() for cell in cells]
        if not any(name in _QUERY | _DOCUMENT | _GRADE for name in names):
            raise BenchmarkError(f"{location}: grade '{cells[usual[2]]}' is not a whole number") from None
        columns = [
            [column for column, name in enumerate(names) if name in kind] for kind in (_QUERY, _DOCUMENT, _GRADE)
        ]
        if all(len(columns_of_kind) == 1 for columns_of_kind in columns):
            return (columns[0][0], columns[1][0], columns[2][0]), True
        return usual, True
    return usual, False


def _in_words(grades: Grades) -> str:
    return ", ".join(f"{key} as {'unjudged' if value is None else value}" for key, value in sorted(grades.items()))
