"""The running text of a document: its paragraphs and their sentences, as written and as a reader sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it.token import Token

from ragbench.base.types import Link
from ragbench.corpus.markdown import links_in, parser, plain_text

_END = re.compile(
    r"""[.!?\u2026][\"'\u201d\u2019)\]*_`]*\s+(?=[^\sa-z])  # no lower-case letter follows
      | [\u3002\uff01\uff1f][\u300d\u300f\uff09]?            # the same in Chinese and Japanese
    """,
    re.VERBOSE,
)
_MODULE_LINE = re.compile(r"(?:import|export)\s|\{/\*")  # of MDX; a reader does not see them
_ADMONITION = re.compile(r"^[ \t]*:::.*$", re.MULTILINE)  # `:::note Title` and `:::` of Docusaurus and VitePress
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
    running = _RunningText.of(text, mdx)
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


@dataclass(frozen=True, slots=True)
class _RunningText:
    """The paragraphs of a text as written, those of lists and quotations included, and the links they refer to."""

    paragraphs: tuple[str, ...]
    references: dict[str, object]

    @staticmethod
    def of(text: str, mdx: bool = False) -> _RunningText:
        """The running text of a markdown text, without headings, code, tables, and imports, exports, comments of MDX.

        A line `:::note Title` ends a paragraph and belongs to none.
        """
        references: dict[str, object] = {}
        paragraphs: list[str] = []
        opened = ""
        for token in parser(mdx).parse(text, references):
            unseen = mdx and _MODULE_LINE.match(token.content)
            if token.type == "inline" and opened == "paragraph_open" and not unseen:
                paragraphs.extend(part.strip() for part in _ADMONITION.split(token.content) if part.strip())
            opened = token.type
        return _RunningText(tuple(paragraphs), references)

    def as_read(self, part: str) -> tuple[str, tuple[tuple[Link, str], ...]]:
        """A part of a paragraph as a reader sees it, and its links, each with its visible words."""
        children: list[Token] = []
        parser().inline.parse(part, parser(), self.references, children)
        links: list[tuple[Link, str]] = []
        for position, child in enumerate(children):
            label = [child]
            if child.type == "link_open":
                end = next(n for n in range(position, len(children)) if _closes(children[n], child))
                label = children[position + 1 : end]
            links += [(link, " ".join(plain_text(label).split())) for link in links_in([child])]
        return " ".join(plain_text(children).split()), tuple(links)


def _closes(token: Token, opening: Token) -> bool:
    return token.type == "link_close" and token.level == opening.level
