"""Find passages by their words: letter case, punctuation, markup and line breaks between them do not matter."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ragbench.corpus.searched import IDEOGRAPHS, KANA, normalised

_UNSPACED = KANA + IDEOGRAPHS  # every one is a word
# Marks that stand apart from their letter, and signs that are never shown, such as soft hyphens, are parts of a word.
_INSIDE = "\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff"
WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}](?:[{_INSIDE}]*[^\W_{_UNSPACED}])*[{_INSIDE}]*")
_BREAK = re.compile(r"\n[^\S\n]*(?:\n|#|```|~~~)")  # between paragraphs, before headings and code

_Passage = tuple[str, ...]
"""The words of a text, in lower case."""


def words(text: str) -> _Passage:
    """The words of a text, in lower case, by which a passage is found."""
    return tuple(word_of(match) for match in WORD.finditer(text))


def word_of(match: re.Match[str]) -> str:
    """The word that `WORD` matched, in the form in which words are compared."""
    return normalised(match[0]).casefold()


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
        texts = [word_of(match) for match in matches]
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
