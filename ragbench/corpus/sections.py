"""Makes sections of headings, with breadcrumbs, offsets and anchors that qrels can name."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragbench.base.types import Document, Section

_NOT_IN_ASCII_SLUG = re.compile(r"[^a-z0-9_ -]")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the top level of a document: `text` without markup, `start` the offset of its line."""

    level: int
    text: str
    start: int


def slug(heading: str) -> str:
    """The heading as a name: lower-case, blanks to `-`, punctuation dropped, letters of any script kept; never empty.

    Like GitHub's heading anchors, except that runs of blanks give one `-` and an empty result becomes `section`. The
    result holds no white space, `/` or `#`.
    """
    text = "-".join(heading.lower().split())
    if text.isascii():
        return _NOT_IN_ASCII_SLUG.sub("", text) or "section"
    # Category M: vowel signs and accents that stand apart from their letter, which isalnum() does not count.
    kept_characters = (c for c in text if c.isalnum() or c in "-_" or unicodedata.category(c)[0] == "M")
    return "".join(kept_characters) or "section"


def section_id(document: Document, section: Section) -> str:
    """The name of a section across the collection, as section-level qrels write it: `docno#anchor`."""
    return f"{document.docno}#{section.anchor}"


def build_sections(
    text: str, headings: Iterable[Heading], ids: Iterable[tuple[int, str]] = (), written: str = ""
) -> tuple[Section, ...]:
    """Sections that tile `text` from the first non-blank one to its end; `headings` in document order.

    `ids` are names that authors gave to places, by offset: one belongs to the section that holds it, or that follows.
    What was `written` in the same lines counts, too: what precedes the first heading is a section even if none of it is
    text, because judgments may name it.
    """
    ordered = list(headings)
    ends = [heading.start for heading in ordered[1:]] + [len(text)]
    first = ordered[0].start if ordered else len(text)
    sections: list[Section] = []
    if text[:first].strip() or "".join(written.splitlines(keepends=True)[: text.count("\n", 0, first)]).strip():
        sections.append(Section(0, 0, (), "", 0, first))
    above: list[tuple[int, str, str]] = []  # level, text and anchor of the headings that hold the current one
    used: set[str] = set()
    repeats: dict[str, int] = {}
    for heading, end in zip(ordered, ends, strict=False):
        while above and above[-1][0] >= heading.level:
            above.pop()
        base = "/".join([above[-1][2], slug(heading.text)] if above else [slug(heading.text)])
        anchor = base
        while anchor in used:  # `Limits`, `Limits`, `Limits 1` must give three anchors
            repeats[base] = repeats.get(base, 0) + 1
            anchor = f"{base}-{repeats[base]}"
        used.add(anchor)
        above.append((heading.level, heading.text, anchor))
        path = tuple(entry[1] for entry in above)
        sections.append(Section(len(sections), heading.level, path, anchor, heading.start, end))
    for offset, name in ids if sections else ():
        number = bisect_right(sections, offset, key=lambda section: section.start) - 1
        # What is in the line of a heading is its own; the id of a block (`^id`) follows it.
        section = sections[number]
        if name[0] != "^" and (not section.level or "\n" in text[section.start : offset]):
            number += number + 1 < len(sections) and not text[offset : section.end].strip()
        number = max(number, 0)
        sections[number] = replace(sections[number], ids=(*sections[number].ids, name))
    return tuple(sections)


def sections_between(sections: Sequence[Section], start: int, end: int) -> Sequence[Section]:
    """The sections, given in text order, that overlap the characters `start` to `end`."""
    first = bisect_right(sections, start, key=lambda section: section.end)
    return sections[first : bisect_left(sections, end, key=lambda section: section.start)]
