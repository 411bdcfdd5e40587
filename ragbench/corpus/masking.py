"""Remove passages from documents, so that the text a topic was made from cannot be used to find its answer.

A passage is found by its words: letter case, punctuation, markup and line breaks between them do not matter. An
ellipsis replaces it, so that headings, sections and line numbers stay where they were.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragbench.base.types import Document
from ragbench.corpus.reader import with_other_text

WIDE = 5
"""A passage of at least this many words is masked in every document, a shorter one only in its topic's answers."""

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"  # written without spaces: every one is a word
WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")
_BREAK = re.compile(r"\n[^\S\n]*(?:\n|#|```|~~~)")  # between paragraphs, before headings and code
_BEFORE, _AFTER = "([{<*_`\"'\u201c\u2018", ")]}>*_`\"'\u201d\u2019"
_GAP = "\u2026"

_Passage = tuple[str, ...]
"""The words of a text, in lower case."""


def words(text: str) -> _Passage:
    """The words of a text, in lower case, by which a passage is found."""
    return tuple(match[0].casefold() for match in WORD.finditer(text))


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


class Finder:
    """Finds many passages in one walk through a text."""

    def __init__(self, passages: Iterable[_Passage], across: bool = False) -> None:
        """Index the passages by their first words, the longest first; `across`: a match may span paragraphs."""
        self._across = across
        self._by_start: dict[_Passage, list[_Passage]] = {}
        for passage in sorted(passages, key=lambda text: (-len(text), text)):
            self._by_start.setdefault(passage[:2], []).append(passage)
        self._short = any(len(start) == 1 for start in self._by_start)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of every occurrence, in order, without overlaps."""
        if not self._by_start:
            return []
        matches = list(WORD.finditer(text))
        breaks = [] if self._across else [match.start() for match in _BREAK.finditer(text)]
        texts = [match[0].casefold() for match in matches]
        paragraphs = [bisect_right(breaks, match.start()) for match in matches]
        spans: list[tuple[int, int]] = []
        position = 0
        while position < len(texts):
            length = self._length(texts, paragraphs, position)
            if length:
                spans.append((matches[position].start(), matches[position + length - 1].end()))
            position += length or 1
        return spans

    def __contains__(self, text: str) -> bool:
        return bool(self.spans(text))

    def _length(self, texts: Sequence[str], paragraphs: Sequence[int], position: int) -> int:
        """The number of words of the longest passage at a place, 0 when there is none."""
        starts = [tuple(texts[position : position + 2])]
        if self._short:
            starts.append((texts[position],))
        for start in starts:
            for passage in self._by_start.get(start, ()):
                stop = position + len(passage)
                if tuple(texts[position:stop]) == passage and paragraphs[position] == paragraphs[stop - 1]:
                    return len(passage)
        return 0


def _mask_document(document: Document, finder: Finder) -> Document:
    text = _without_spans(document.text, finder.spans(document.text), _GAP)
    frontmatter = _mask_frontmatter(document.frontmatter, finder)
    if text == document.text and frontmatter == document.frontmatter:
        return document
    return with_other_text(document, text, frontmatter)


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
