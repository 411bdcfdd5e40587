"""The chunkers of Librarian (seed 004, feature 2): by headings of level 2 and 3, and by size with an overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ragbench.base.options import Count, Natural, Validated, option
from ragbench.base.types import Chunk, Document
from ragbench.index import chunking
from ragbench.index.spans import Span

CHARS_PER_TOKEN = 4
_SENTENCE_REACH = 200  # characters before the end of a piece in which a sentence may end it
_SENTENCE_ENDS = (". ", "! ", "? ")
_HEADING_LEVELS = (2, 3)


@dataclass(frozen=True)
class _SizesInTokens(Validated):
    """The parameters of both chunkers."""

    chunk_size: Count = 512  # tokens, of 4 characters each
    chunk_overlap: Natural = 50  # tokens that a chunk repeats of the one before
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chunk_overlap >= self.chunk_size:
            raise self.refused("chunk_overlap", f"must be below chunk_size {self.chunk_size}, got {self.chunk_overlap}")


@option(
    "chunking=librarian_fixed",
    "Chunks of equal size with an overlap, ended at sentences (source 004).",
    package="index.chunking",
)
@dataclass(frozen=True)
class LibrarianFixedChunker(_SizesInTokens):
    """Pieces of `chunk_size` tokens (at least 1) of 4 characters, of which the last `chunk_overlap` repeat in the next.

    A piece ends after a sentence if one ends in its last 200 characters, unless the next piece would then not begin
    later than this one; so cutting ends for every size. A document shorter than one piece stays whole, and the piece
    that reaches the end is the last. Raises ConfigError when the overlap is not smaller than the piece.
    """

    method: ClassVar[str] = "fixed"

    def chunk(self, document: Document) -> list[Chunk]:
        """The chunks of one document; none for a document without text."""
        return _chunks(document, pieces(document.text, 0, len(document.text), self.chunk_size, self.chunk_overlap))


@option(
    "chunking=librarian_semantic",
    "One chunk for each heading of level 2 or 3; long sections are split by size (source 004).",
    package="index.chunking",
)
@dataclass(frozen=True)
class LibrarianSemanticChunker(_SizesInTokens):
    """The text under every heading of level 2 or 3, deeper headings included; text before the first one is a chunk.

    A section of more than twice `chunk_size` tokens is cut as `LibrarianFixedChunker` cuts, and so is a document
    without such headings; a document shorter than `chunk_size` tokens stays whole. A line in a code fence is never a
    heading. Raises ConfigError when the overlap is not smaller than the piece.
    """

    method: ClassVar[str] = "semantic"

    def chunk(self, document: Document) -> list[Chunk]:
        """The chunks of one document; none for a document without text."""
        return _chunks(document, self._ranges(document))

    def _ranges(self, document: Document) -> Iterator[tuple[int, int]]:
        end = len(document.text)
        chars = self.chunk_size * CHARS_PER_TOKEN
        headings = [section.start for section in document.sections if section.level in _HEADING_LEVELS]
        starts = sorted({0, *headings}) if document.text[: headings[0] if headings else 0].strip() else headings
        if end < chars:
            yield 0, end
        elif len(starts) < 2:
            yield from pieces(document.text, 0, end, self.chunk_size, self.chunk_overlap)
        else:
            for start, stop in zip(starts, [*starts[1:], end], strict=True):
                if len(document.text[start:stop].strip()) > 2 * chars:
                    yield from pieces(document.text, start, stop, self.chunk_size, self.chunk_overlap)
                else:
                    yield start, stop


def pieces(text: str, start: int, end: int, chunk_size: int, chunk_overlap: int) -> Iterator[tuple[int, int]]:
    """The ranges of fixed pieces of the characters `start` to `end`; every one begins later than the one before."""
    chars, overlap = chunk_size * CHARS_PER_TOKEN, chunk_overlap * CHARS_PER_TOKEN
    while end - start > chars:
        stop = start + chars
        # A full stop and a blank inside the piece; the cut goes between the two.
        last = max(text.rfind(ending, max(start, stop - _SENTENCE_REACH), stop) for ending in _SENTENCE_ENDS) + 1
        if last > start + overlap:
            stop = last
        yield start, stop
        start = stop - overlap
    if start < end:
        yield start, end


def _chunks(document: Document, ranges: Iterator[tuple[int, int]]) -> list[Chunk]:
    """Chunks `docno#0`, `docno#1` ... of the ranges without the blanks around them; blank ranges give none."""
    trimmed = (_trimmed(document.text, start, stop) for start, stop in ranges)
    spans = [Span(start, start, stop) for start, stop in trimmed if start < stop]
    return [chunking.chunk_of_span(document, str(number), span) for number, span in enumerate(spans)]


def _trimmed(text: str, start: int, stop: int) -> tuple[int, int]:
    piece = text[start:stop]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
