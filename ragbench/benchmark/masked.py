"""Remove from documents the texts that the topics of a benchmark were made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ragbench.base.errors import BenchmarkError
from ragbench.base.formatting import counted
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.quotes import locate
from ragbench.corpus.masking import Masks
from ragbench.corpus.sections import section_id


def without_sources(benchmark: Benchmark) -> Benchmark:
    """Mask the source and the text of every topic that names a source (`Topic.masked`).

    The documents, and with them the collection's digest, change; judgments of sections follow their headings; `version`
    says how much is masked. A benchmark without such topics is returned as it is.
    """
    sourced = [topic for topic in benchmark.topics if topic.masked]
    if not sourced:
        return benchmark
    documents = masks_of(benchmark, sourced)(benchmark.documents)
    changed = {old.docno: (old, new) for old, new in zip(benchmark.documents, documents, strict=True) if old is not new}
    anchors: dict[str, str] = {}
    for docno, (old, new) in changed.items():
        if len(old.sections) != len(new.sections):
            raise BenchmarkError(f"masking the sources of topics changes the headings of {docno}: drop its topics")
        pairs = zip(old.sections, new.sections, strict=True)
        anchors |= {section_id(old, was): section_id(new, current) for was, current in pairs}
    section_qrels = {
        qid: {anchors.get(section, section): grade for section, grade in grades.items()}
        for qid, grades in benchmark.section_qrels.items()
    }
    sentence = f"the sources of {counted(len(sourced), 'topic')} are masked in {counted(len(changed), 'document')}"
    by_docno = {document.docno: document for document in documents}
    return replace(
        benchmark,
        documents=documents,
        section_qrels=section_qrels,
        quotes=tuple(locate(quote.qid, quote.cited or quote.docno, quote.text, by_docno) for quote in benchmark.quotes),
        version="; ".join(part for part in (benchmark.version, sentence) if part),
    )


def masks_of(benchmark: Benchmark, topics: Iterable[Topic]) -> Masks:
    """The passages of a benchmark's documents that the sources and texts of topics mask."""
    return Masks.of(
        (text, [docno for docno, grade in benchmark.document_qrels.get(topic.qid, {}).items() if grade > 0])
        for topic in topics
        if topic.masked
        for text in (topic.masked, topic.text)
    )
