"""Remove from documents the texts that the topics of a benchmark were made from.

An ellipsis replaces a passage, so that headings, sections and line numbers stay where they were.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragbench.base.fingerprint import digest
from ragbench.base.types import BenchmarkError, Document, counted
from ragbench.benchmark import quotes
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.phrases import Finder, words
from ragbench.corpus import markdown, reader
from ragbench.corpus.links import related_links
from ragbench.corpus.metadata import normalise_tags, read_metadata
from ragbench.corpus.sections import build_sections, section_id

WIDE = 5
"""A passage of at least this many words is masked in every document, a shorter one only in its topic's answers."""

_BEFORE, _AFTER = "([{<*_`\"'\u201c\u2018", ")]}>*_`\"'\u201d\u2019"
_GAP = "\u2026"

_Passage = tuple[str, ...]
"""The words of a text, in lower case."""


@dataclass(frozen=True)
class Masks:
    """Passages to remove: `everywhere` from all documents, `within` from the documents named by its keys."""

    everywhere: frozenset[_Passage]
    within: Mapping[str, frozenset[_Passage]]

    @staticmethod
    def of(passages: Iterable[tuple[str, Collection[str]]]) -> Masks:
        """From (text, docnos of the answer); texts without words are excluded."""
        everywhere: set[_Passage] = set()
        within: dict[str, set[_Passage]] = {}
        for text, docnos in passages:
            passage = words(text)
            if len(passage) >= WIDE:
                everywhere.add(passage)
            elif passage:
                for docno in docnos:
                    within.setdefault(docno, set()).add(passage)
        return Masks(frozenset(everywhere), {docno: frozenset(texts) for docno, texts in within.items()})

    def __call__(self, documents: Sequence[Document]) -> tuple[Document, ...]:
        """The documents without the passages; those that hold none are the same objects."""
        return tuple(_mask_document(document, finder) for document, finder in self._finders(documents))

    def unmasked(self, documents: Sequence[Document]) -> Iterator[tuple[Document, str]]:
        """The documents that still hold a passage, and where: title, text, frontmatter or links."""
        for document, finder in self._finders(documents):
            places = {
                "title": document.title,
                "text": document.text,
                "frontmatter": "\n\n".join(_strings(document.frontmatter)),
                "links": "\n\n".join(link.text for link in document.links),
            }
            for name, text in places.items():
                if text in finder:
                    yield document, name

    def _finders(self, documents: Sequence[Document]) -> Iterator[tuple[Document, Finder]]:
        wide = Finder(self.everywhere)
        finders = {docno: Finder(texts | self.everywhere) for docno, texts in self.within.items()}
        return ((document, finders.get(document.docno, wide)) for document in documents)


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
        quotes=tuple(
            quotes.locate(quote.qid, quote.cited or quote.docno, quote.text, by_docno) for quote in benchmark.quotes
        ),
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


def _mask_document(document: Document, finder: Finder) -> Document:
    text = _without_spans(document.text, finder.spans(document.text), _GAP)
    frontmatter = _mask_frontmatter(document.frontmatter, finder)
    if text == document.text and frontmatter == document.frontmatter:
        return document
    return _with_other_text(document, text, frontmatter)


def _with_other_text(document: Document, text: str, frontmatter: Mapping[str, Any]) -> Document:
    """The same document with another text and frontmatter, parsed again, and a new digest.

    Links that are still there keep their targets; path, date and size stay those of the file.
    """
    markup = markdown.parse_markdown(text, document.first_line, markdown.is_mdx(document.path))
    metadata = read_metadata(frontmatter)
    targets = {(link.kind, link.text): link.target for link in document.links}
    has_lead = any(section.level == 0 for section in document.sections)  # also where none of it is text
    links = markup.links + related_links(metadata.related)
    return replace(
        document,
        title=reader.title_of(metadata, markup, document.docno),
        text=text,
        frontmatter=frontmatter,
        sections=build_sections(text, markup.headings, written=document.docno if has_lead else ""),
        code_blocks=markup.code_blocks,
        links=tuple(replace(link, target=targets.get((link.kind, link.text))) for link in links),
        tags=normalise_tags((*metadata.tags, *markup.tags)),
        digest=digest([document.digest, text, json.dumps(frontmatter, default=str, sort_keys=True)]),
    )


def _without_spans(text: str, spans: Sequence[tuple[int, int]], gap: str) -> str:
    """The text with a gap instead of every span; markup round a span is removed with it, line ends stay."""
    parts, position = [], 0
    for start, end in spans:
        while start > position and text[start - 1] in _BEFORE:
            start -= 1
        while end < len(text) and text[end] in _AFTER:
            end += 1
        parts += [text[position:start], gap, "\n" * text.count("\n", start, end)]
        position = end
    return "".join([*parts, text[position:]])


def _mask_frontmatter(value: Any, finder: Finder) -> Any:
    """A value of the frontmatter without the passages; texts without a remaining word are dropped."""
    if isinstance(value, str):
        spans = finder.spans(value)
        unmasked = _without_spans(value, spans, " ").strip() if spans else value
        return unmasked if words(unmasked) or not spans else None
    if isinstance(value, Mapping):
        items = {key: (item, _mask_frontmatter(item, finder)) for key, item in value.items()}
        return {key: new for key, (old, new) in items.items() if new is not None or old is None}
    if isinstance(value, list):
        pairs = [(item, _mask_frontmatter(item, finder)) for item in value]
        return [new for old, new in pairs if new is not None or old is None]
    return value


def _strings(value: Any) -> Iterator[str]:
    """Every text in a value of the frontmatter."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(item)
