"""Documents -> chunks: one level along the headings, or two levels for parent document retrieval (P13)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from ragbench.base.options import Natural, Validated, option
from ragbench.base.types import Chunk, Document
from ragbench.corpus.sections import sections_between
from ragbench.index.spans import Sizes, Span, spans


class Chunker(Protocol):
    """Cuts documents; `version` goes up when the same parameters begin to give other chunks.

    A class variable `method` may name how it cuts, for the metadata of hits.
    """

    version: ClassVar[int]

    def chunk(self, document: Document) -> list[Chunk]:
        """The chunks of one document, ids `docno#0`, `docno#1` ... in text order; parents, if any, after them."""
        ...


@option(
    "chunking=header",
    "Split at headings, merge what is small, never cut a code fence (source 001).",
    package="index.chunking",
)
@dataclass(frozen=True)
class HeaderChunker(Validated):
    """Chunks along the headings: 200 to 1500 characters with an overlap of 100. Seed 001, "Parent Document Retrieval".

    A section is a chunk. Sections shorter than `min_chars` merge with their neighbours under the same parent heading;
    sections longer than `max_chars` are cut into even pieces at paragraphs, else sentences, else words, and each piece
    but the first begins with up to `overlap_chars` of the one before. A code fence is never cut, so a chunk can be
    longer than `max_chars` by one long fence. A chunk without a neighbour under the same parent heading can be shorter
    than `min_chars`. Raises ConfigError for sizes that contradict each other.
    """

    min_chars: Natural = 200  # minimum characters of a chunk; shorter sections are joined
    max_chars: Natural = 1500  # maximum characters of a chunk
    overlap_chars: Natural = 100  # characters that a chunk repeats of the one before
    version: ClassVar[int] = 1
    method: ClassVar[str] = "header"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self, "min_chars", "max_chars", "overlap_chars")

    def chunk(self, document: Document) -> list[Chunk]:
        """The chunks of one document; none for a document without text."""
        sizes = Sizes(self.min_chars, self.max_chars, self.overlap_chars)
        return [chunk_of_span(document, str(number), span) for number, span in enumerate(spans(document, sizes))]


@option("p13.chunking", "Search small chunks, return their parents (sources 000 P13, 001).")
@dataclass(frozen=True)
class ParentChildChunker(Validated):
    """Two levels: children of 400-600 characters to retrieve, parents of 1500-2000 to return. Seeds 000, P13; 003, 4.5.

    Parents are cut as `HeaderChunker` cuts; each is then cut into children, so a child lies wholly in one parent. The
    overlap at the start of a parent gets no children: they belong to the parent before. Every child has a parent, also
    in a document short enough for one of each. Raises ConfigError for sizes that contradict each other.
    """

    child_min: Natural = 400  # minimum characters of a chunk that is searched
    child_max: Natural = 600  # maximum characters of a chunk that is searched
    child_overlap: Natural = 100  # characters that it repeats of the one before
    parent_min: Natural = 1500  # minimum characters of a chunk that is returned
    parent_max: Natural = 2000  # maximum characters of a chunk that is returned
    parent_overlap: Natural = 200  # characters that it repeats of the one before
    version: ClassVar[int] = 1
    method: ClassVar[str] = "parents"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self, "child_min", "child_max", "child_overlap")
        _check_sizes(self, "parent_min", "parent_max", "parent_overlap")
        if self.child_max > self.parent_max:
            raise self.refused("child_max", f"must be at most parent_max {self.parent_max}, got {self.child_max}")

    def chunk(self, document: Document) -> list[Chunk]:
        """The children `docno#0` ..., then the parents `docno#p0` ... (`is_parent`)."""
        child_sizes = Sizes(self.child_min, self.child_max, self.child_overlap)
        children: list[Chunk] = []
        parents: list[Chunk] = []
        for span in spans(document, Sizes(self.parent_min, self.parent_max, self.parent_overlap)):
            parent = chunk_of_span(document, f"p{len(parents)}", span, is_parent=True)
            parents.append(parent)
            for part in spans(document, child_sizes, span.core, span.end):
                children.append(chunk_of_span(document, str(len(children)), part, parent=parent.chunk_id))
        return children + parents


@option(
    "p13.chunking=expand_only",
    "Keep the chunks unchanged and return their parents: the effect of expansion alone.",
    min_chars="${index.chunking.min_chars}",
    max_chars="${index.chunking.max_chars}",
    overlap_chars="${index.chunking.overlap_chars}",
)
@dataclass(frozen=True)
class GroupedChunker(HeaderChunker):
    """The chunks of `HeaderChunker`, unchanged, with parents over runs of neighbours: P13's expansion without its cuts.

    A parent holds as many neighbours as fit into `parent_max` characters, at least one. Raises ConfigError for sizes
    that contradict each other.
    """

    parent_max: Natural = 2000  # maximum characters of the neighbours that are returned together

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_chars > self.parent_max:
            raise self.refused("max_chars", f"must be at most parent_max {self.parent_max}, got {self.max_chars}")

    def chunk(self, document: Document) -> list[Chunk]:
        """The children `docno#0` ..., then the parents `docno#p0` ... (`is_parent`)."""
        children: list[Chunk] = []
        runs: list[Span] = []
        for chunk in super().chunk(document):
            if runs and chunk.end - runs[-1].start <= self.parent_max:
                runs[-1] = replace(runs[-1], end=chunk.end)
            else:
                runs.append(Span(chunk.start, chunk.start, chunk.end))
            children.append(replace(chunk, parent=f"{document.docno}#p{len(runs) - 1}"))
        return children + [chunk_of_span(document, f"p{n}", run, is_parent=True) for n, run in enumerate(runs)]


def chunk_of_span(
    document: Document, name: str, span: Span, parent: str | None = None, is_parent: bool = False
) -> Chunk:
    """The chunk `docno#name` of a span, which must not begin or end with white space."""
    sections = sections_between(document.sections, span.start, span.end)
    return Chunk(
        chunk_id=f"{document.docno}#{name}",
        docno=document.docno,
        text=document.text[span.start : span.end],
        header_path=sections[0].path,
        sections=tuple(section.number for section in sections),
        start=span.start,
        end=span.end,
        parent=parent,
        is_parent=is_parent,
    )


def _check_sizes(sizes: Validated, *names: str) -> None:
    """Raise Refused for contradicting sizes; `names` are the fields of least and greatest length and overlap."""
    least, most, overlap = (getattr(sizes, name) for name in names)
    if most <= overlap:
        raise sizes.refused(names[1], f"must be above {names[2]} {overlap}, got {most}")
    if least > most - overlap:
        raise sizes.refused(names[0], f"must be at most {names[1]} - {names[2]} = {most - overlap}, got {least}")
