"""Sections that may answer a query, found by their words and structure, with none of the configurations being compared.

Words: BM25 (k1 1.2, b 0.75) over sections in plain Python, words cut to their first six letters, headings and title
counted three times. Structure: sections of documents that link to relevant documents or are linked from them.
A pool made only from the runs under test favours them; this search shares no index, encoder or fusion with them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ragbench.base.errors import ConfigError
from ragbench.base.types import Document, Section
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.phrases import words
from ragbench.corpus.sections import body_start, section_id
from ragbench.extras.collect.pool import PoolRow

_K1, _B = 1.2, 0.75
_STEM = 6
_HEADINGS = 3
_LINKED = 0.5  # added to the score of sections of linked documents, as a share of the best score


@dataclass(frozen=True)
class Passage:
    """A section with its document."""

    document: Document
    section: Section

    @property
    def id(self) -> str:
        """Its section id."""
        return section_id(self.document, self.section)

    @property
    def heading(self) -> str:
        """Its headings, or the title of its document where it has none."""
        return " > ".join(self.section.path) or self.document.title

    @property
    def body(self) -> str:
        """Its text without its heading."""
        return self.document.text[body_start(self.document.text, self.section) : self.section.end].strip()


def passages(documents: Iterable[Document]) -> list[Passage]:
    """Every section of the documents that has text below its heading."""
    all_passages = (Passage(document, section) for document in documents for section in document.sections)
    return [passage for passage in all_passages if passage.body]


class Evidence:
    """Finds sections by BM25 and structure."""

    def __init__(self, documents: Sequence[Document]) -> None:
        """Count the words of every section."""
        self.passages = passages(documents)
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = []
        for number, passage in enumerate(self.passages):
            counted = Counter(_stems(passage.body))
            for stem in _stems(f"{passage.document.title} {passage.heading}"):
                counted[stem] += _HEADINGS
            lengths.append(sum(counted.values()))
            for stem, count in counted.items():
                self._postings[stem].append((number, count))
        mean = sum(lengths) / max(1, len(lengths)) or 1.0
        self._norms = [_K1 * (1 - _B + _B * length / mean) for length in lengths]
        self._linked: dict[str, set[str]] = defaultdict(set)
        for document in documents:
            for link in document.links:
                if link.target is not None and link.target != document.docno:
                    self._linked[document.docno].add(link.target)
                    self._linked[link.target].add(document.docno)

    def find(self, text: str, n: int, relevant: Collection[str] = ()) -> list[Passage]:
        """The `n` sections most like a text, best first; those linked with `relevant` documents score more."""
        scores: dict[int, float] = defaultdict(float)
        for stem, times in Counter(_stems(text)).items():
            postings = self._postings.get(stem, ())
            idf = math.log(1 + (len(self.passages) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                scores[number] += times * idf * count * (_K1 + 1) / (count + self._norms[number])
        near = {docno for source_docno in relevant for docno in self._linked.get(source_docno, ())}
        gain = _LINKED * max(scores.values(), default=0.0) if near else 0.0
        gained = {
            number: score + (gain if self.passages[number].document.docno in near else 0.0)
            for number, score in scores.items()
        }
        best = sorted(gained, key=lambda number: (-gained[number], number))[:n]
        return [self.passages[number] for number in best]


def _stems(text: str) -> list[str]:
    return [word[:_STEM] for word in words(text)]


def unjudged_sections(benchmark: Benchmark, depth: int) -> list[PoolRow]:
    """The first `depth` unjudged sections that may answer each topic; topics without a relevant document come first.

    A topic is searched by its text and its author's description of the need. ConfigError for a depth below 1.
    """
    if depth < 1:
        raise ConfigError(f"--depth must be at least 1, got {depth}")
    evidence = Evidence(benchmark.documents)
    rows: dict[bool, list[PoolRow]] = {False: [], True: []}
    for topic in benchmark.topics:
        grades = benchmark.document_qrels.get(topic.qid, {})
        judged = benchmark.section_qrels.get(topic.qid, {})
        relevant = [docno for docno, grade in grades.items() if grade > 0]
        candidates = evidence.find(f"{topic.text} {topic.need}", depth + len(judged), relevant)
        new = [passage for passage in candidates if passage.id not in judged][:depth]
        rows[bool(relevant)] += [PoolRow(topic.qid, passage.id, rank, 1) for rank, passage in enumerate(new, start=1)]
    return [*rows[False], *rows[True]]
