"""The running text of a document: its paragraphs and their sentences, as written and as a reader sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ragbench.base.types import Link
from ragbench.corpus.markdown import RunningText

_END = re.compile(
    r"""[.!?\u2026][\"'\u201d\u2019)\]*_`]*\s+(?=[^\sa-z])  # no lower-case letter follows
      | [\u3002\uff01\uff1f][\u300d\u300f\uff09]?            # the same in Chinese and Japanese
    """,
    re.VERBOSE,
)
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|vs|etc|resp|approx|no|fig|dr|mr|mrs|ms|st)\.\s+\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """`raw` as written, `text` without markup, and the links in it with the words they are shown as."""

    raw: str
    text: str
    links: tuple[tuple[Link, str], ...] = ()


def sentences(text: str, mdx: bool = False) -> Iterator[Sentence]:
    """The sentences of a markdown text; headings, code and tables hold none.

    A sentence ends at `.`, `!`, `?` or an ellipsis before white space and no lower-case letter, at the full stops of
    Chinese and Japanese, and with its paragraph. An item of a list is a paragraph.
    """
    running = RunningText.of(text, mdx)
    for paragraph in running.paragraphs:
        for raw in _split(paragraph):
            visible, links = running.as_read(raw)
            if visible:
                yield Sentence(raw, visible, links)


def _split(paragraph: str) -> Iterator[str]:
    begin = 0
    for match in _END.finditer(paragraph):
        if not _ABBREVIATION.search(paragraph, begin, match.end()):
            yield paragraph[begin : match.end()].strip()
            begin = match.end()
    if remainder := paragraph[begin:].strip():
        yield remainder
