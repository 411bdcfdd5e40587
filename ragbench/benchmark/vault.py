"""Load a user's own vault: a folder of markdown and a table of queries, judged or still to be judged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbench.base.files import resolved
from ragbench.base.fingerprint import text_digest
from ragbench.base.options import option
from ragbench.base.types import BenchmarkError, shown
from ragbench.benchmark.benchmark import Benchmark, Topic, best_sections, docno_of_section
from ragbench.benchmark.judgments import (
    GRADES,
    Grades,
    UnknownTopics,
    check_grades,
    convention,
    graded_names,
    parse_grade,
    read_judgments,
    require_topics,
)
from ragbench.benchmark.lines import EXPECTED, QUERY, identifier, read_rows_of_cases
from ragbench.benchmark.names import Names
from ragbench.benchmark.native import DOCUMENTS, SECTIONS, judgment_files, read_judgment_folder
from ragbench.benchmark.query_filter import read_filter
from ragbench.benchmark.quotes import locate, report, sections_of, split_target
from ragbench.corpus.file_warning import counted_by_kind
from ragbench.corpus.folder import MARKDOWN
from ragbench.corpus.links import Dialect

COLUMNS = {
    "qid": ("qid", "_id", "id", "query_id", "query-id"),
    "text": QUERY,
    "relevant": EXPECTED,
    "split": ("split",),
    "type": ("type", "kind"),
    "need": ("need",),
    "hypothesis": ("hypothesis",),
    "salient_terms": ("salient_terms",),
    "group": ("group",),
    "provenance": ("provenance",),
    "masked": ("masked",),
    "filter": ("filter", "filters"),
    "grade": GRADES,
}
_LISTED = 5
_Pairs = dict[str, dict[str, int]]


@option(
    "data=vault",
    "Your own notes and questions:  data=vault data.corpus=DIR data.queries=FILE",
    plain=True,
    dialect="${links.dialect}",
)
def load_vault(
    corpus: Path,  # folder of markdown files
    # CSV, TSV, JSON or YAML: text; optional: qid, relevant (paths, separated by ;), split, type, need, group
    queries: Path | None = None,
    qrels: Path | None = None,  # folder that `ragbench judge` writes, or judgments in BEIR or TREC format or CSV
    name: str | None = None,  # the folder's name when null
    grades: Grades | None = None,  # a new grade for each grade of a qrels file
    include: Sequence[str] = MARKDOWN,
    # judgments of unknown queries: fail stops with the line number, warn skips them
    unknown_topics: UnknownTopics = "fail",
    dialect: Dialect = "auto",
    topics: bool = True,
    exclude: Sequence[str] = (),  # globs of files and folders to exclude, as in .gitignore; !build/ reads a folder
    drafts: bool = False,  # read drafts and pages that the site does not list or search
    site: str = "",  # address under which the site serves the folder, such as https://docs.example.org/guide
) -> Benchmark:
    """Read a vault with queries in a CSV, TSV, JSON (Lines) or YAML file.

    Columns of `queries`: text; optionally qid (made from the text when absent, so that a new row changes no other id),
    relevant (docnos, paths, file names or wikilinks, with `#heading` for a section or quoted words for a passage,
    several separated by `;`, grade 1 each), split, type, need, hypothesis, group, provenance,
    masked, salient_terms, filter (see `Topic`).
    `qrels` adds judgments: a folder with sections.qrels or documents.qrels, as `ragbench judge` writes it, or a file in
    BEIR or TREC format, or a folder with one (*.tsv); they win over `relevant`. Judgments of unknown documents are
    omitted with a warning, those of unknown topics too with `unknown_topics="warn"`. Raises BenchmarkError with file
    and line.
    """
    from ragbench.corpus.reader import read_vault

    vault = read_vault(corpus, include=include, exclude=exclude, drafts=drafts, dialect=dialect)
    name, grades = name or resolved(corpus).name, check_grades(grades)
    warnings, notes = [str(warning) for warning in vault.warnings], counted_by_kind(vault.left_out)
    if not topics:
        return Benchmark(name, vault.documents, (), {}, warnings=tuple(warnings), notes=tuple(notes))
    if queries is None:
        raise BenchmarkError(
            "data.queries is not set: specify a CSV or JSONL file with the column text, or add topics=derived"
        )
    names = Names(vault.documents, site, vault.left_out, resolved(corpus).name)
    listed, documents, sections, cited, kinds, missing = _read_query_rows(queries, names, warnings)
    by_docno = {document.docno: document for document in vault.documents}
    quotes = tuple(locate(*item, by_docno) for item in cited)
    kinds["quote"] = sum(quote.state != "lost" for quote in quotes)
    if answers := kinds.total() + len(missing) + len(quotes) - kinds["quote"]:
        resolved_by = ", ".join(f"{count} by {kind}" for kind, count in (+kinds).most_common()) or "none"
        notes.append(f"{queries}: {kinds.total()} of {answers} answers were found: {resolved_by}")
    for quote in quotes:
        if quote.state != "lost":
            documents.setdefault(quote.qid, {})[quote.docno] = 1
            sections.setdefault(quote.qid, {}).update(dict.fromkeys(sections_of(quote, by_docno[quote.docno]), 1))
    warnings += [f"{queries}: {sentence}" for _, sentence in report(quotes, by_docno)]
    if qrels is not None:
        judged_documents, judged_sections, not_found = judgments_by_id(
            qrels, names, grades, {topic.qid for topic in listed}, unknown_topics, warnings
        )
        missing += not_found
        for qid, of_topic in judged_documents.items():
            documents.setdefault(qid, {}).update(of_topic)
        for qid, of_topic in judged_sections.items():
            sections.setdefault(qid, {}).update(of_topic)
    for qid, best in best_sections(sections).items():
        for docno, grade in best.items():
            documents.setdefault(qid, {}).setdefault(docno, grade)
    judged = sum(1 for topic in listed if topic.qid in documents)
    if not judged:
        warnings += [
            f"{queries}: column '{column}' names documents but is not read: rename it to 'relevant'"
            for column in unread_answers([row for _, row in read_rows_of_cases(queries)], names)
        ]
    if judged < len(listed):
        warnings.append(
            f"{queries}: {len(listed) - judged} of {len(listed)} queries have no judgments yet (ragbench data pool)"
        )
    return Benchmark(
        name,
        vault.documents,
        listed,
        documents,
        sections,
        tuple(warnings),
        convention(grades),
        quotes=quotes,
        notes=tuple(notes),
        missing=tuple(dict.fromkeys(missing)),
    )


def _read_query_rows(
    path: Path, names: Names, warnings: list[str]
) -> tuple[tuple[Topic, ...], _Pairs, _Pairs, list[tuple[str, str, str]], Counter[str], list[tuple[str, str, int]]]:
    """The topics of a table; the documents, sections and quotes (qid, document, words) that its rows call relevant.

    Then how many answers each kind of name finds, and (qid, name, grade) of the unknown, which `warnings` lists.
    """
    quotes: list[tuple[str, str, str]] = []
    topics: dict[str, Topic] = {}
    documents: _Pairs = {}
    sections: _Pairs = {}
    missing: list[tuple[str, str, str]] = []
    kinds: Counter[str] = Counter()
    rows = list(read_rows_of_cases(path))
    continued = 0
    names.find_sites(
        target
        for _, row in rows
        for alias in COLUMNS["relevant"]
        for target in re.split(r"[;\s,\"]+", str(row.get(alias)))
    )
    for location, row in rows:
        cells = {
            name: next((row[a] for a in aliases if row.get(a) not in (None, "", [])), None)
            for name, aliases in COLUMNS.items()
        }
        grade_of_row = _grade_of(row, location) if cells["relevant"] else None
        if not topics and not any(alias in row for alias in COLUMNS["text"]):
            raise BenchmarkError(f"{location}: column 'text' is missing; the columns are {', '.join(map(str, row))}")
        if topics and cells["text"] is cells["qid"] is None:  # in a table with merged cells
            continued += cells["relevant"] is not None
        else:
            topic = _topic(cells, location)
        if topics.setdefault(topic.qid, topic) != topic:
            remedy = "give every query its own qid, text and filter"
            raise BenchmarkError(f"{location} has query '{topic.qid}' ({topic.text[:40]}) again: {remedy}")
        for target, grade in graded_names(cells["relevant"], location):
            grade = grade if grade_of_row is None else grade_of_row
            target, quoted = split_target(target)
            if not target and names.kind(quoted) in ("path", "URL"):  # Windows copies a path with its quotes
                target, quoted = quoted, ""
            if quoted:
                quotes += [(topic.qid, names.document(target) or target, quoted)] if grade > 0 else []
                continue
            kind = _judge(names, topic.qid, target, grade, documents, sections, location)
            kinds[kind] += bool(kind)
            if not kind and grade > 0:
                place = location.removeprefix(f"{path}:").strip()
                missing.append((f"line {place}" if place.isdecimal() else place, topic.qid, target))
    if not topics:
        raise BenchmarkError(f"{path} holds no queries: its first line names the columns, such as text and relevant")
    if continued:
        warnings.append(f"{path}: {continued} rows without a query add answers to the query above them")
    if missing:
        listed = ", ".join(f"{target} ({place}{names.hint(target)})" for place, _, target in missing[:_LISTED])
        more = " ..." if len(missing) > _LISTED else ""
        warnings.append(f"{path}: {len(missing)} relevant documents are not in the vault: {listed}{more}")
    not_found = [(qid, target, 1) for _, qid, target in missing]
    return tuple(topics.values()), documents, sections, quotes, kinds, not_found


def _judge(names: Names, qid: str, target: str, grade: int, documents: _Pairs, sections: _Pairs, location: str) -> str:
    """Add the grade of a document or section; returns by what the name finds it, empty if it finds none.

    `c#` may be the name of a file, so documents are looked up before sections. BenchmarkError for a second grade.
    """
    docno, section = names.document(target), names.section(target)
    if docno is None and section is None:
        return ""
    judgments, key = (documents, docno) if docno is not None else (sections, section)
    if judgments.setdefault(qid, {}).setdefault(str(key), grade) != grade:
        raise BenchmarkError(f"{location} judges {key} for {qid} twice with different grades: keep one of them")
    return names.kind(target) if docno is not None else names.section_kind(target)


def _grade_of(row: Mapping[str, Any], location: str) -> int | None:
    """The grade of the answers in a row, None if it has no column for it, or words there."""
    cell = next((str(row[name]) for name in GRADES if row.get(name) is not None), None)
    return None if cell is None or any(map(str.isalpha, cell)) else parse_grade(cell.strip(), location)


def unread_answers(rows: Sequence[Mapping[str, Any]], names: Names) -> list[str]:
    """The columns that are not read although most of their values name documents or sections of the folder."""
    columns = {alias for aliases in COLUMNS.values() for alias in aliases}
    values: dict[str, list[str]] = {}
    for row in rows:
        for column, value in row.items():
            if column not in columns and isinstance(value, str) and value.strip():
                values.setdefault(column, []).append(value)
    return [
        column
        for column, targets in values.items()
        if sum(names.document(target) is not None or names.section(target) is not None for target in targets)
        > len(targets) / 2
    ]


def _topic(cells: Mapping[str, Any], location: str) -> Topic:
    for name, value in cells.items():
        if value is not None and name not in ("qid", "relevant", "filter", "grade") and not isinstance(value, str):
            raise BenchmarkError(f"{location}: column '{name}' must be a text, got {shown(value)}")
    text = " ".join((cells["text"] or "").split())
    if not text:
        raise BenchmarkError(f"{location}: the query is empty: give it a text or remove the row")
    qid = identifier("" if cells["qid"] is None else cells["qid"]) or f"q-{text_digest(text, 8)}"
    others = ("qid", "text", "relevant", "filter", "grade")
    fields = {name: cells[name].strip() for name in COLUMNS if cells[name] and name not in others}
    fields |= {"split": fields["split"].lower()} if "split" in fields else {}
    conditions = read_filter(cells["filter"], location)
    return Topic(qid, text, **{name: value for name, value in fields.items() if value}, filter=conditions)


def judgments_by_id(
    path: Path,
    names: Names,
    grades: Grades | None,
    qids: set[str],
    unknown_topics: UnknownTopics,
    warnings: list[str],
) -> tuple[_Pairs, _Pairs, list[tuple[str, str, int]]]:
    """Judgments from a folder or file, by the ids of the vault; and (qid, name, grade) of those of other documents."""
    if path.is_dir() and not (path / SECTIONS).exists() and not (path / DOCUMENTS).exists():
        files = sorted(path.glob("*.tsv"))
        if len(files) != 1:
            contents = (
                f"holds {len(files)} files *.tsv" if files else f"holds neither {SECTIONS} nor {DOCUMENTS} nor *.tsv"
            )
            chosen = next((file for file in files if file.stem == "test"), files[0] if files else path / "FILE.tsv")
            raise BenchmarkError(f"{path} {contents}: name the file of judgments, such as data.qrels={chosen}")
        path = files[0]
    sources = read_judgment_folder(path) if path.is_dir() else (read_judgments(path, grades), {})
    if unknown_topics == "fail":
        require_topics(judgment_files(path, sources) if path.is_dir() else {path: sources[0]}, qids)
    documents: _Pairs = {}
    sections: _Pairs = {}
    missing: list[tuple[str, str, int]] = []
    unknown: set[str] = set()
    for source in sources:
        for qid, judged in source.items():
            if qid not in qids:
                unknown.add(qid)
                continue
            for target, grade in judged.items():
                if not _judge(names, qid, target, grade, documents, sections, str(path)):
                    missing.append((qid, target, grade))
    if unknown:
        warnings.append(
            f"{path}: {len(unknown)} judged topics are not in the queries: {', '.join(sorted(unknown)[:3])}"
        )
    if missing:
        warnings.append(
            f"{path}: {len(missing)} judgments of unknown documents or sections are excluded: {missing[0][1]} ..."
            f"{names.hint(missing[0][1])}"
        )
    judged_below = {(qid, docno_of_section(target)) for qid, target, _ in missing if "#" in target}
    return documents, sections, [one for one in missing if one[:2] not in judged_below]
