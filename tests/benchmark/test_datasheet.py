"""The datasheet of version 2 states the figures of its files."""

from __future__ import annotations

from collections import Counter

import pytest

from ragbench.base import locations
from ragbench.benchmark.benchmark import area, topic_area
from ragbench.benchmark.load import load
from ragbench.benchmark.native import listed_documents, read_judgment_folder, read_topics

FOLDER = locations.builtin() / "qrels" / "v2"


@pytest.fixture(scope="module")
def sheet() -> str:
    return (FOLDER / "DATASHEET.md").read_text(encoding="utf-8")


def test_datasheet_counts_topics_by_type_and_split(sheet: str) -> None:
    topics = read_topics(FOLDER / "topics.jsonl")
    assert f"**Topics.** {len(topics)}," in sheet
    counts = Counter((topic.type, topic.split) for topic in topics)
    for kind in {topic.type for topic in topics}:
        assert f"| {kind} | {counts[kind, 'train']} | {counts[kind, 'test']} |" in sheet
    assert f"{counts['no_answer', 'train'] + counts['no_answer', 'test']} have none." in sheet


def test_datasheet_counts_documents_and_judgments(sheet: str) -> None:
    documents, sections = read_judgment_folder(FOLDER)
    grades = Counter(grade for judged in sections.values() for grade in judged.values())
    useful = sum(count for grade, count in grades.items() if grade > 0)
    assert f"{len(listed_documents(FOLDER) or ())} markdown documents" in sheet
    assert f"{sum(grades.values()):,} of sections, of which {useful:,} above 0" in sheet
    assert f"({grades[3]:,} of grade 3, {grades[2]:,} of grade 2, {grades[1]:,} of grade 1)" in sheet
    assert f"{sum(map(len, documents.values())):,} of documents" in sheet


def test_area_alone_does_not_find_answers(sheet: str) -> None:
    """R@10 of the documents of a topic's area in random order: at most .25, and as the datasheet says."""
    benchmark = load({"loader": "builtin"})
    sizes = Counter(area(document.docno) for document in benchmark.documents)
    values = []
    for topic in benchmark.topics:
        grades = benchmark.document_qrels.get(topic.qid, {})
        relevant = [docno for docno, grade in grades.items() if grade > 0]
        if relevant:
            home = topic_area(grades)
            inside = sum(area(docno) == home for docno in relevant) / len(relevant)
            values.append(inside * min(10, sizes[home]) / sizes[home])
    mean = sum(values) / len(values)
    assert mean <= 0.25
    assert f"| .57 | {mean:.2f} |".replace("0.", ".") in sheet
