"""Where to cut a document: at headings, else evenly at paragraphs, sentences or words, never inside a code fence."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ragbench.base.types import CodeBlock, Document, Section
from ragbench.corpus.sections import sections_between

_CLOSING = r"[\"'\u201d\u2019)\]*_`]*"  # quotation marks, brackets and markup after a full stop
_BREAKS = re.compile(
    rf"""(?P<paragraph>\n(?:[^\S\n]*\n)+)                              # blank lines
      | \n(?=[^\S\n]*(?:[-*+][ \t]|[>|]|\d+[.)][ \t])|[^\n|`]+[ ]\|[ ])  # a list item, quotation or table row begins
      | [.!?\u2026]{_CLOSING}(?P<sentence>[ \t]+|\n)(?=[^\sa-z])       # a sentence ends, no lower-case letter follows
      | [\u3002\uff01\uff1f]{_CLOSING}                                 # the same in Chinese and Japanese
    """,
    re.VERBOSE,
)
# `## Title`, or lines of text with `===` or `---` under them; then blanks. A section of level 1-6 begins with one of
# the two.
_HEADING_LINES = re.compile(r" {0,3}(?:#{1,6}(?![^ \t\n])[^\n]*|(?:[^\n]+\n)+?[^\S\n]*(?:=+|-+)[ \t]*(?=\n|\Z))\s*")
# The costs of a cut; one at a paragraph break costs nothing. A piece of half the least length costs 0.5.
_SENTENCE_COST = 0.15
_WORD_COST = 1.0
_FINENESS = 32  # sentence breaks are at least `most` / 32 apart: this bounds the work and hardly matters in prose


@dataclass(frozen=True, slots=True)
class Sizes:
    """Lengths in characters: less than `least` merges, more than `most` is cut, cuts overlap by up to `overlap`."""

    least: int
    most: int
    overlap: int


@dataclass(frozen=True, slots=True)
class Span:
    """The characters `start` to `end`, blank at neither side; those before `core` repeat the span before."""

    start: int
    core: int
    end: int


def spans(document: Document, sizes: Sizes, start: int = 0, end: int | None = None) -> list[Span]:
    """Cut the characters `start` to `end` of a document into spans that together hold every non-blank character.

    Whole sections are kept together with their small neighbours under the same parent heading (`_groups`); a group
    longer than `most` is cut into even pieces (`_Cutter`). A heading is never cut or separated from its text, so it can
    make a span longer than `most`; so can a code fence, together with less than `least` characters of other text.
    """
    stop = len(document.text) if end is None else end
    result: list[Span] = []
    for group in _merge_sections(document, sizes, start, stop):
        result.extend(_Cutter(document, sizes, group).pieces())
    return result


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbouring sections, clipped to the range that is being cut."""

    sections: tuple[Section, ...]
    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start

    def merged_with(self, group: _Group) -> _Group:
        return _Group((*self.sections, *group.sections), self.start, group.end)

    def can_merge(self, group: _Group, sizes: Sizes) -> bool:
        """Whether the other stands under the heading that holds this group, and both together are not too long."""
        under = is_under(group.sections[0], parent_anchor(self.sections[0]))
        return under and self.length + group.length <= sizes.most


def _merge_sections(document: Document, sizes: Sizes, start: int, stop: int) -> list[_Group]:
    """Small sections merged with the next one while the sum fits, then those still small with the one before."""
    forwards: list[_Group] = []
    for group in _with_their_headings(document, start, stop):
        if forwards and forwards[-1].length < sizes.least and forwards[-1].can_merge(group, sizes):
            forwards[-1] = forwards[-1].merged_with(group)
        else:
            forwards.append(group)
    groups: list[_Group] = []
    for group in forwards:
        if groups and group.length < sizes.least and groups[-1].can_merge(group, sizes):
            groups[-1] = groups[-1].merged_with(group)
        else:
            groups.append(group)
    return groups


def _with_their_headings(document: Document, start: int, stop: int) -> Iterator[_Group]:
    """One group for each section, but a heading without text of its own goes with the first section under it."""
    waiting: _Group | None = None
    for section in sections_between(document.sections, start, stop):
        group = _Group((section,), max(section.start, start), min(section.end, stop))
        if waiting is not None:
            if is_under(section, waiting.sections[-1].anchor):
                group = waiting.merged_with(group)
            else:
                yield waiting
        waiting = group
        if section.level == 0 or body_start(document.text, section) < section.end:
            yield group
            waiting = None
    if waiting is not None:
        yield waiting


class _Cutter:
    """Cuts one group of sections at the least cost: of cuts inside paragraphs, short pieces and uneven lengths."""

    def __init__(self, document: Document, sizes: Sizes, group: _Group) -> None:
        self.text, self.sizes, self.group = document.text, sizes, group
        blocks = document.code_blocks
        first = bisect_right(blocks, group.start, key=lambda block: block.end)
        self.fences = blocks[first : bisect_left(blocks, group.end, key=lambda block: block.start)]

    def pieces(self) -> Iterator[Span]:
        """The spans of the group."""
        if self.group.length <= self.sizes.most:
            if span := self._trimmed(self.group.start, self.group.start, self.group.end):
                yield span
            return
        points, costs = self._possible_cuts()
        chosen = self._cheapest_cuts(points, costs)
        last: Span | None = None
        for begin, end in pairwise(chosen):
            start = begin
            if last is not None and end - begin <= self.sizes.most - self.sizes.overlap:
                start = self._overlap_start(begin, last.core + 1, points)
            if span := self._trimmed(start, begin, end):
                yield span
                last = span

    def _possible_cuts(self) -> tuple[list[int], list[float]]:
        """Every position at which the group may be cut, its two ends included, and the cost of a cut there."""
        start, end = self.group.start, self.group.end
        costs = {start: 0.0, end: 0.0}
        spacing = self.sizes.most // _FINENESS
        last = last_paragraph = start
        for match in _BREAKS.finditer(self.text, start, end):
            cut = match.end()
            if match["paragraph"]:
                if cut - last_paragraph >= spacing:
                    costs[cut] = 0.0
                    last = last_paragraph = cut
            # A table row is cut only when there is no other place.
            elif cut - last >= spacing and not (match["sentence"] and self._in_table(match.start())):
                costs[cut] = _SENTENCE_COST
                last = cut
        for fence in self.fences:
            costs.setdefault(fence.start, _SENTENCE_COST)
            costs.setdefault(fence.end + 1, _SENTENCE_COST)
        points = self._allowed_points(sorted(costs))
        for begin, stop in list(pairwise(points)):
            if not self._fences_between(begin, stop):
                costs.update(dict.fromkeys(self._word_cuts(begin, stop), _WORD_COST))
        points = self._allowed_points(sorted(costs))
        return points, [costs[point] for point in points]

    def _allowed_points(self, points: list[int]) -> list[int]:
        """The points that neither divide a fence nor separate a heading from its text."""
        start, end = self.group.start, self.group.end
        # Both ends exclusive.
        closed = [(fence.start, fence.end + 1) for fence in self.fences]
        headings = (section for section in self.group.sections if section.level and section.start >= start)
        closed += [(heading.start, body_start(self.text, heading) + 1) for heading in headings]
        ranges = iter(sorted(closed))
        following = next(ranges, None)
        reach = start  # the furthest end of the closed ranges that began so far
        kept_points = []
        for point in points:
            while following and following[0] < point:
                reach = max(reach, following[1])
                following = next(ranges, None)
            if point in (start, end) or (start < point < end and point >= reach):
                kept_points.append(point)
        return kept_points

    def _word_cuts(self, start: int, end: int) -> Iterator[int]:
        """Even cuts between words, or through a word that is too long."""
        limit = self.sizes.most - self.sizes.overlap
        while end - start > limit:
            even = start + -(-(end - start) // -(-(end - start) // limit))
            start = next((cut for cut in range(even, start, -1) if self.text[cut - 1].isspace()), even)
            yield start

    def _cheapest_cuts(self, points: list[int], costs: list[float]) -> list[int]:
        """The cheapest of all ways from the first point to the last (dynamic programming over the last cut)."""
        most, least = self.sizes.most, self.sizes.least
        target = self.group.length / -(-self.group.length // (most - self.sizes.overlap))
        best = [0.0] + [math.inf] * (len(points) - 1)
        came = [0] * len(points)
        for number in range(1, len(points)):
            end, previous = points[number], points[number - 1]
            fence = end - previous > most - least and self._fences_between(previous, end)
            for earlier in range(number - 1, -1, -1):
                length, lead = end - points[earlier], previous - points[earlier]
                # One part may stand alone, however long; a line or two before a long fence stay with the fence.
                if lead and not (fence and lead < least):
                    if length > most:
                        break
                    if earlier and length > most - self.sizes.overlap:
                        continue
                short = max(0.0, 1 - length / least) if least else 0.0
                cost = best[earlier] + costs[number] + short + ((length - target) / most) ** 2
                if cost < best[number]:
                    best[number], came[number] = cost, earlier
        number = len(points) - 1
        chosen = [points[number]]
        while number:
            number = came[number]
            chosen.append(points[number])
        return chosen[::-1]

    def _overlap_start(self, cut: int, low: int, points: list[int]) -> int:
        """The start of the overlap: the first sentence or word from `low` on, in the section of `cut` and no fence."""
        number = bisect_right(self.group.sections, cut, key=lambda section: section.start) - 1
        low = min(max(low, cut - self.sizes.overlap, self.group.sections[number].start), cut)
        divided = self._fences_between(low, low + 1)
        if divided and divided[0].start < low:
            low = min(divided[0].end + 1, cut)
        number = bisect_left(points, low)
        if points[number] < cut:
            return points[number]
        while low < cut and not self.text[low - 1].isspace():
            low += 1
        return low

    def _fences_between(self, start: int, end: int) -> tuple[CodeBlock, ...]:
        """The fences that hold one of the characters `start` to `end`."""
        first = bisect_right(self.fences, start, key=lambda fence: fence.end)
        return self.fences[first : bisect_left(self.fences, end, key=lambda fence: fence.start)]

    def _in_table(self, position: int) -> bool:
        return self.text.startswith("|", self.text.rfind("\n", 0, position) + 1)

    def _trimmed(self, start: int, core: int, end: int) -> Span | None:
        """The span without white space at its sides; none when nothing else is left."""
        body = self.text[core:end]
        if not body.strip():
            return None
        core, end = core + len(body) - len(body.lstrip()), core + len(body.rstrip())
        repeated = self.text[start:core]
        return Span(start + len(repeated) - len(repeated.lstrip()), core, end)


def body_start(text: str, section: Section) -> int:
    """The offset of the first character of a section that is neither heading nor blank; its end when there is none."""
    heading = _HEADING_LINES.match(text, section.start) if section.level else None
    return min(heading.end(), section.end) if heading else section.start


def parent_anchor(section: Section) -> str:
    """The anchor of the section whose heading holds this one, `""` at the outermost level."""
    return section.anchor.rpartition("/")[0]


def is_under(section: Section, anchor: str) -> bool:
    """Whether the section stands under the heading with this anchor, at any depth; everything stands under `""`."""
    return not anchor or section.anchor.startswith(f"{anchor}/")
