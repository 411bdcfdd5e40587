"""Lint for a benchmark: mistakes that make its values wrong or too easy to reach."""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ragbench.base.types import Document
from ragbench.benchmark import quotes
from ragbench.benchmark.benchmark import NO_ANSWER, Benchmark, Topic, area, best_sections, docno_of_section
from ragbench.benchmark.runs import file_names, new_name
from ragbench.extras.collect.masked import masks_of
from ragbench.extras.collect.similarity import near_duplicates

Severity = Literal["error", "warning", "note"]
_RANK = {"error": 0, "warning": 1, "note": 2}
_WARNINGS = {
    *("few-documents", "unlocated-grade", "moved-quote", "edited-quote"),
    *("near-duplicate-topic", "duplicate-document", "few-topics", "type-balance"),
}
_NOTES = {"negative-grade", "rare-type", "never-relevant"}
"""The codes of findings that are not errors."""
_WORD = re.compile(r"\w+")
_TOPICS, _OF_TYPE = 25, 5  # topics that a split, and a type, should have
_LEAK_WORDS = 5  # of a query that must not occur verbatim in its answer
_ALIKE = 0.8  # share of common words from which two queries are nearly the same


@dataclass(frozen=True)
class Finding:
    """One finding: `code` is its kind, `where` a topic, document, group, type or split, `message` a sentence."""

    severity: Severity
    code: str
    where: str
    message: str


def check(benchmark: Benchmark) -> list[Finding]:
    """All findings, errors first, sorted."""
    documents = {document.docno: document for document in benchmark.documents}
    findings = [
        *_dangling(benchmark, documents),
        *_judgments(benchmark),
        *_leaks(benchmark, documents),
        *_sources_in_documents(benchmark),
        *_quotes(benchmark, documents),
        *_repetition(benchmark),
        *_splits(benchmark),
        *_never_relevant(benchmark),
    ]
    return sorted(findings, key=lambda f: (_RANK[f.severity], f.code, f.where, f.message))


def _finding(code: str, where: str, message: str) -> Finding:
    severity: Severity = "warning" if code in _WARNINGS else "note" if code in _NOTES else "error"
    return Finding(severity, code, where, message)


def _dangling(benchmark: Benchmark, documents: dict[str, Document]) -> Iterator[Finding]:
    """Judgments of topics, documents or sections that do not exist."""
    qids = {topic.qid for topic in benchmark.topics}
    names = file_names(benchmark)
    anchors = {docno: [section.anchor for section in document.sections] for docno, document in documents.items()}
    for qid in sorted({*benchmark.document_qrels, *benchmark.section_qrels} - qids):
        yield _finding("unknown-topic", qid, "it has judgments but is not among the topics: remove them or add it")
    for qid, grades in benchmark.document_qrels.items():
        for docno in sorted(docno for docno in grades if docno not in documents):
            yield _finding(
                "unknown-document", qid, f"'{docno}' is judged but not in the collection{_near(docno, documents)}"
            )
    for qid, grades in benchmark.section_qrels.items():
        for target in sorted(grades):
            docno, anchor = docno_of_section(target), target.rpartition("#")[2]
            if "#" not in target or docno not in anchors:
                yield _finding(
                    "unknown-document", qid, f"'{target}' is judged but its document is not in the collection"
                )
            elif anchor not in anchors[docno]:
                hint = _near(anchor, anchors[docno])
                yield _finding("unknown-heading", qid, f"'{new_name(docno, names)}' has no section '{anchor}'{hint}")


def _judgments(benchmark: Benchmark) -> Iterator[Finding]:
    """Topics and documents with inconsistent grades."""
    best, names = best_sections(benchmark.section_qrels), file_names(benchmark)
    for topic in benchmark.topics:
        grades = benchmark.document_qrels.get(topic.qid, {})
        sections = best.get(topic.qid, {})
        positive = sorted(docno for docno, grade in {**sections, **grades}.items() if grade > 0)
        if topic.type == NO_ANSWER and positive:
            yield _finding(
                "answered-no-answer",
                topic.qid,
                f"its type is {NO_ANSWER} but {new_name(positive[0], names)} is relevant",
            )
        if not grades and not sections:
            yield _finding("unjudged-topic", topic.qid, "it has no judgments: pool and judge it")
        elif topic.type != NO_ANSWER and not positive:
            yield _finding("nothing-relevant", topic.qid, f"nothing is relevant: judge more, or set type {NO_ANSWER}")
        if topic.type == "multi_document" and 0 < len(positive) < 3:
            yield _finding("few-documents", topic.qid, f"multi_document with {len(positive)} relevant documents")
        if any(grade < 0 for grade in grades.values()):
            yield _finding("negative-grade", topic.qid, "negative grades count as not relevant")
        if not sections:
            continue
        for docno in sorted({*grades, *sections}):
            grade, best_grade = grades.get(docno), sections.get(docno)
            if best_grade is None and (grade or 0) > 0:
                message = f"{new_name(docno, names)} is graded {grade}, but no section of it is judged: judge them"
                yield _finding("unlocated-grade", topic.qid, message)
            elif best_grade is not None and grade != best_grade:
                given = "not at all" if grade is None else grade
                message = f"{new_name(docno, names)} is graded {given}, its best section {best_grade}"
                yield _finding("document-grade", topic.qid, message)


def _leaks(benchmark: Benchmark, documents: dict[str, Document]) -> Iterator[Finding]:
    """Queries that occur verbatim in their answer: they test copying, not search."""
    names = file_names(benchmark)
    for topic in benchmark.topics:
        query = _words(topic.text)
        if query.count(" ") + 1 < _LEAK_WORDS:
            continue
        sections = {t: g for t, g in benchmark.section_qrels.get(topic.qid, {}).items() if g > 0}
        relevant = sections or {t: g for t, g in benchmark.document_qrels.get(topic.qid, {}).items() if g > 0}
        for target in sorted(relevant):
            text = _text(target, documents, bool(sections))
            if f" {query} " in f" {_words(text)} ":
                name = new_name(target, names)
                yield _finding("verbatim-query", topic.qid, f"{name} contains the query word for word: reword it")


def _sources_in_documents(benchmark: Benchmark) -> Iterator[Finding]:
    """Sources of topics that documents still contain."""
    names = file_names(benchmark)
    missed = masks_of(benchmark, benchmark.topics).unmasked(benchmark.documents)
    holding = list({document.docno: document for document, _ in missed}.values())
    if not holding:
        return
    for topic in benchmark.topics:
        for document, position in masks_of(benchmark, [topic]).unmasked(holding):
            name = new_name(document.docno, names)
            message = f"the {position} of {name} still contains the topic's source: drop the topic"
            yield _finding("unmasked-source", topic.qid, message)


def _quotes(benchmark: Benchmark, documents: dict[str, Document]) -> Iterator[Finding]:
    """Quotes that their documents no longer contain."""
    for quote, sentence in quotes.report(benchmark.quotes, documents):
        yield _finding(f"{quote.state}-quote", quote.qid, sentence)


def _repetition(benchmark: Benchmark) -> Iterator[Finding]:
    """Duplicate queries and documents."""
    for first, second, likeness in near_duplicates([topic.text for topic in benchmark.topics], _ALIKE):
        one, duplicate = benchmark.topics[first], benchmark.topics[second]
        if one.group and one.group == duplicate.group:
            continue
        identical = _words(one.text) == _words(duplicate.text)
        shared = "the same words as" if identical else f"{likeness:.0%} of its words are shared with"
        apart = ": they are in two splits" if one.split != duplicate.split else ""
        remedy = f"give both one group, or drop one{apart}"
        code = "duplicate-topic" if identical else "near-duplicate-topic"
        yield _finding(code, one.qid, f"{shared} {duplicate.qid}: {remedy}")
    copies: dict[str, list[str]] = defaultdict(list)
    names = file_names(benchmark)
    for document in benchmark.documents:
        copies[document.text.strip()].append(new_name(document.docno, names))
    for text, docnos in copies.items():
        if text and len(docnos) > 1:
            yield _finding("duplicate-document", docnos[0], f"the same text as {', '.join(docnos[1:4])}")


def _splits(benchmark: Benchmark) -> Iterator[Finding]:
    """Leaks between splits, and splits too small or too different to compare."""
    groups: dict[str, set[str]] = defaultdict(set)
    by_split: dict[str, list[Topic]] = defaultdict(list)
    for topic in benchmark.topics:
        by_split[topic.split].append(topic)
        if topic.group:
            groups[topic.group].add(topic.split)
    for group, splits in sorted(groups.items()):
        if len(splits) > 1:
            yield _finding("split-leak", group, f"the group is in {' and '.join(sorted(splits))}: keep it in one split")
    for split, topics in sorted(by_split.items()):
        if not split.strip():
            yield _finding("no-split", topics[0].qid, f"{len(topics)} topics have no split: write train or test")
        if len(topics) < _TOPICS:
            yield _finding(
                "few-topics",
                split,
                f"{len(topics)} queries, fewer than {_TOPICS}: too few to detect a difference",
            )
    types = Counter(topic.type for topic in benchmark.topics)
    for kind, total in sorted(types.items()):
        if len(types) > 1 and total < _OF_TYPE:
            yield _finding(
                "rare-type",
                kind,
                f"queries of this type: {total}, fewer than {_OF_TYPE}: their mean is unreliable",
            )
        for split, topics in sorted(by_split.items()):
            expected = total * len(topics) / len(benchmark.topics)
            count = sum(topic.type == kind for topic in topics)
            if len(by_split) > 1 and abs(count - expected) > max(2.0, 0.25 * expected):
                yield _finding(
                    "type-balance", kind, f"{count} of {total} are in {split}, {expected:.1f} expected: split again"
                )


def _never_relevant(benchmark: Benchmark) -> Iterator[Finding]:
    """Documents without a topic: harmless, but nothing tests whether they are found."""
    relevant = {docno for grades in benchmark.document_qrels.values() for docno, grade in grades.items() if grade > 0}
    by_area: dict[str, list[str]] = defaultdict(list)
    names = file_names(benchmark)
    for document in benchmark.documents:
        by_area[area(document.docno)].append(document.docno)
    for name, docnos in sorted(by_area.items()):
        never = sorted(set(docnos) - relevant)
        if never:
            listed = ", ".join(new_name(docno, names) for docno in never[:5]) + (" ..." if len(never) > 5 else "")
            yield _finding(
                "never-relevant",
                name or "(root)",
                f"{len(never)} of {len(docnos)} documents are not relevant to any query: {listed}",
            )


def _text(target: str, documents: dict[str, Document], is_section: bool) -> str:
    document = documents.get(docno_of_section(target) if is_section else target)
    if document is None or not is_section:
        return document.text if document else ""
    anchor = target.rpartition("#")[2]
    section = next((section for section in document.sections if section.anchor == anchor), None)
    return document.text[section.start : section.end] if section else ""


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _near(name: str, names: Sequence[str] | dict[str, Document]) -> str:
    # A comparison takes about 20 microseconds, and a wrong path may call it for every judgment.
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.7) if len(names) <= 2000 else []
    return f"; did you mean '{near[0]}'?" if near else ""
