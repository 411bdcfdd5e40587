"""Sections that may answer a query, found by their words, with none of the configurations being compared.

BM25 (k1 1.2, b 0.75) over sections in plain Python, words cut to their first six letters, headings and title counted
three times. It shares no index, encoder or fusion with the configurations.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragbench.base.types import Document, Section
from ragbench.benchmark.phrases import words
from ragbench.corpus.sections import section_id
from ragbench.index.spans import body_start

_K1, _B = 1.2, 0.75
_STEM = 6
_HEADINGS = 3


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


class SectionFinder:
    """Finds sections by BM25."""

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

    def find(self, text: str, n: int) -> list[Passage]:
        """The `n` sections most like a text, best first."""
        scores: dict[int, float] = defaultdict(float)
        for stem, times in Counter(_stems(text)).items():
            postings = self._postings.get(stem, ())
            idf = math.log(1 + (len(self.passages) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                scores[number] += times * idf * count * (_K1 + 1) / (count + self._norms[number])
        best = sorted(scores, key=lambda number: (-scores[number], number))[:n]
        return [self.passages[number] for number in best]


def _stems(text: str) -> list[str]:
    return [word[:_STEM] for word in words(text)]
