"""Relevant passages quoted from documents: judgments that survive edits, moved files and other chunkings.

A quote is found by its words, so markup and line breaks do not matter. It is searched in other documents when the cited
one no longer contains it; an edited quote is found where most of its words are together.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ragbench.base.types import Document
from ragbench.benchmark.phrases import WORD, Finder, word_of, words
from ragbench.corpus.sections import section_id, sections_between

_State = Literal["kept", "moved", "edited", "lost"]

_QUOTED = re.compile(
    r"^(?P<name>[^\"\u201c]*?)(?:\s*[\"\u201c](?P<text>.+)[\"\u201d]|(?<!\S)['\u2018](?P<single>.+)['\u2019])$",
    re.DOTALL,
)
_LIKE = 0.6  # share of its words that an edited quote must still have
_LIST = re.compile(r"\[\s*(?:([\"']).*\1\s*)?\]", re.DOTALL)  # as Python, NumPy or JSON writes it
_ITEM = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_ENTRY = re.compile(r"(?:(?<![^\s;])'[^\n]*?'(?=\s*(?:[;\n]|$))|[^;\n\"\u201c]|[\"\u201c][^\"\u201d]*[\"\u201d]?)+")
_BULLET = re.compile(r"[-*\u2022]\s+")
_SHORTEST = 4  # words of a quote that is searched in other documents, or in edited form


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage that answers a topic: characters `start` to `end` of a document's text.

    `text` is the quoted text. `state`: `kept`, unchanged; `moved` to this document from `cited`; `edited`, with the
    share `likeness` (0 to 1) of its words left; `lost`, not found (`docno` is then the cited one).
    """

    qid: str
    text: str
    docno: str
    start: int
    end: int
    state: _State = "kept"
    cited: str = ""
    likeness: float = 1.0

    @property
    def id(self) -> str:
        """Its name in runs and judgments: `docno#start-end`."""
        return f"{self.docno}#{self.start}-{self.end}"

    def covered_by(self, start: int, end: int) -> bool:
        """Whether the characters `start` to `end` of the document hold at least half of the quote."""
        return 2 * (min(end, self.end) - max(start, self.start)) >= self.end - self.start


def split_target(target: str) -> tuple[str, str]:
    """Document and quoted words of an entry such as `notes/keys.md "a key opens"`; no words where none are quoted."""
    match = _QUOTED.match(target.strip())
    return (match["name"].strip(), (match["text"] or match["single"]).strip()) if match else (target.strip(), "")


def entries(cell: str) -> list[str]:
    """The entries of a cell, separated by `;` or a line break outside of quotation marks, or of a list of strings."""
    if _LIST.fullmatch(cell.strip()):
        return [double or single for double, single in _ITEM.findall(cell) if double or single]
    parts = _ENTRY.findall(cell)
    return [_BULLET.sub("", part.strip(), count=1) for part in parts if part.strip()]


def locate(qid: str, cited: str, text: str, documents: Mapping[str, Document]) -> Quote:
    """Find a quote in the cited document, else in the only other one that has it, else the passage most like it."""
    finder = Finder([words(text)], across=True)
    document = documents.get(cited)
    if document is not None and (spans := finder.spans(document.text)):
        return Quote(qid, text, cited, *spans[0])
    if len(words(text)) >= _SHORTEST:
        elsewhere = [
            (docno, spans[0]) for docno, document in documents.items() if (spans := finder.spans(document.text))
        ]
        if len(elsewhere) == 1:
            ((docno, span),) = elsewhere
            return Quote(qid, text, docno, *span, "moved", cited)
        likeness, start, end = _most_like(words(text), document.text) if document is not None else (0.0, 0, 0)
        if likeness >= _LIKE:
            return Quote(qid, text, cited, start, end, "edited", cited, likeness)
    return Quote(qid, text, cited, 0, 0, "lost", cited, 0.0)


def _most_like(quote: Sequence[str], text: str) -> tuple[float, int, int]:
    """The first passage of the quote's length that shares most words with it: share of the words, start, end."""
    missing = Counter(quote)
    window: deque[tuple[str, int]] = deque()
    shared, best = 0, (0.0, 0, 0)
    for match in WORD.finditer(text):
        token = word_of(match)
        window.append((token, match.start()))
        shared += missing[token] > 0
        missing[token] -= 1
        if len(window) > len(quote):
            removed, _ = window.popleft()
            missing[removed] += 1
            shared -= missing[removed] > 0
        if shared / len(quote) > best[0]:
            best = shared / len(quote), window[0][1], match.end()
    return best


def sections_of(quote: Quote, document: Document) -> list[str]:
    """The ids of the sections that contain at least half of a quote; without one, of all sections that it touches."""
    touched = sections_between(document.sections, quote.start, quote.end)
    half = [section for section in touched if quote.covered_by(section.start, section.end)]
    return [section_id(document, section) for section in half or touched]


def report(quotes: Iterable[Quote], documents: Mapping[str, Document]) -> list[tuple[Quote, str]]:
    """A sentence for every quote that moved, was edited or is lost, with the words to cite now."""
    findings = []
    for quote in quotes:
        if quote.state == "kept":
            continue
        if quote.state == "lost":
            where = f"no longer in {quote.cited} nor anywhere else" if quote.cited else "in no document, or in several"
            message = f'the quote "{_short(quote.text)}" is {where}: quote again'
        else:
            current_text = " ".join(documents[quote.docno].text[quote.start : quote.end].split())
            reason = (
                (f"moved from {quote.cited}" if quote.cited else "has no document")
                if quote.state == "moved"
                else f"was edited ({quote.likeness:.0%} of its words are left)"
            )
            message = f'the quote "{_short(quote.text)}" {reason}: cite {quote.docno} "{current_text}"'
        findings.append((quote, message))
    return findings


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
