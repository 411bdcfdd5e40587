"""The texts of a chunk table that other artefacts are made from: fields to search, passages to embed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from ragbench.base.document_names import has_words, is_untitled, words_of_path
from ragbench.base.options import one_of, section
from ragbench.corpus.metadata import read_metadata

if TYPE_CHECKING:
    from ragbench.index.chunks import ChunkTable

_DESTINATION = re.compile(
    r"(?P<code>(?P<ticks>`+|~{3,})(?!`).*?(?<!`)(?P=ticks)(?!`))"
    r"|\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"  # `[label](page.md "title")`
    r"|^ {0,3}\[[^\[\]\n^][^\[\]\n]*\]:[ \t]*\S+(?:[ \t]+[\"'(][^\n]*)?$"  # `[label]: page.md "title"`
    r"|\[\[[^\[\]|\n]*\|(?P<label>[^\[\]\n]*)\]\]",  # `[[page|label]]`
    re.DOTALL | re.MULTILINE,
)
FIELDS = (
    "content",
    "title",
    "path",
    "headers",
    "keywords",
    "description",
    "tags",
    "aliases",
    "author",
    "anchors",
)
"""The lexical fields. `path`: the words of folders and file name; `anchors`: the anchor texts to the document."""

FieldName = Annotated[str, one_of(*FIELDS)]

Unit = Literal["chunk", "document"]
"""The unit of lexical search: a chunk, or a document with all of its text."""


_CONTINUES = re.compile(r"[ \t>]*(?:[^\n]*\||[-*+][ \t]|\d+[.)][ \t])")  # rows and items, which may have an opening


@section("index.passage")
@dataclass(frozen=True)
class PassageTemplate:
    """The text of a chunk for a model: `title`, words of the `path`, `headings` as `A > B > C`, a blank line, the text.

    A text that continues a table or list begins with its opening (`ragbench.index.openings`).
    Headings alone are seed 000's P2. Names without meaning (`ragbench.base.document_names`) and a first heading that
    repeats the title are excluded.
    """

    title: bool = False  # the title of the document
    path: bool = False  # the words of folders and file name
    headings: bool = False  # the heading path

    def passages(self, table: ChunkTable) -> list[str]:
        """The texts to embed, one for every retrievable chunk."""
        texts = [
            table.opening(number) + text if _CONTINUES.match(text) else text
            for number, text in enumerate(table.texts(0, table.n_retrievable))
        ]
        if not (self.title or self.path or self.headings):
            return texts
        return [self._with_context(self._names(table, number), text) for number, text in enumerate(texts)]

    def passage(self, table: ChunkTable, chunk: int) -> str:
        """The text of one chunk, a parent or not."""
        return self._with_context(self._names(table, chunk), table.opening(chunk) + table.text(chunk))

    def _names(self, table: ChunkTable, chunk: int) -> Iterator[str]:
        row = table.document[chunk]
        title, headings = table.titles[row], table.header_path(chunk)
        if self.title and has_words(title) and not is_untitled(title, table.paths[row]):
            yield title
            headings = headings[1:] if headings[:1] == (title,) else headings
        if self.path:
            yield words_of_path(table.docnos[row], table.paths[row])
        if self.headings:
            yield from headings

    def _with_context(self, names: Iterable[str], text: str) -> str:
        context = " > ".join(filter(None, names))
        return f"{context}\n\n{text}" if context else text


def lexical_rows(table: ChunkTable, names: Sequence[str], unit: Unit = "chunk") -> Iterator[Mapping[str, str]]:
    """One mapping field -> text for every retrievable chunk, in order, or for every document.

    Each chunk has the fields of its document (all but content and headers).
    """
    shared = [_document_fields(table, number) for number in range(table.n_documents)]
    headings = table.document_column("headings")
    shown = [_title_above(table, number, headings[number]) for number in range(table.n_documents)]
    if unit == "document":
        for number, fields in enumerate(shared):
            text = shown[number] + without_destinations(str(table.document_value("text", number)))
            texts = {"content": text, "headers": " \n".join(headings[number])}
            yield {name: (fields | texts)[name] for name in names}
        return
    first_chunks = table.ranges[0]
    for number, text in enumerate(table.texts(0, table.n_retrievable)):
        document = table.document[number]
        # The path of the first section, then the headings of the other sections that the chunk overlaps.
        further = [headings[document][section] for section in table.sections[number][1:]]
        above = shown[document] if number == first_chunks[document] else ""
        of_chunk = {
            "content": above + without_destinations(text),
            "headers": " \n".join([*table.header_path(number), *further]),
        }
        yield {name: (shared[document] | of_chunk)[name] for name in names}


def _title_above(table: ChunkTable, document: int, headings: Sequence[str]) -> str:
    """The title of the frontmatter, which sites show above a text without such a heading; empty without a text."""
    title = table.titles[document]
    if not str(table.document_value("text", document)).strip():  # its only chunk is its title and description
        return ""
    is_shown = any(heading.casefold() == title.casefold() for heading in headings)
    return (
        ""
        if is_shown or is_untitled(title, table.paths[document]) or not _has_title(table, document)
        else f"{title}\n\n"
    )


def _has_title(table: ChunkTable, document: int) -> bool:
    return bool(read_metadata(table.frontmatter[document]).title)


def _document_fields(table: ChunkTable, document: int) -> dict[str, str]:
    """The searchable fields of a document, which each of its chunks has; the parts of a tag become words."""
    metadata = read_metadata(table.frontmatter[document])
    return {
        "title": table.titles[document],
        "path": words_of_path(table.docnos[document], table.paths[document]),
        "keywords": " \n".join(metadata.keywords),
        "description": metadata.description,
        "tags": " \n".join(tag.replace("/", " ") for tag in table.document_value("tags", document)),
        "aliases": " \n".join(metadata.aliases),
        "author": " \n".join(metadata.authors),
        "anchors": " \n".join(table.labels[document]),
    }


def without_destinations(text: str) -> str:
    """The text with the labels of its links only, as a page shows it; code is left alone.

    >>> without_destinations("see [tides](sea/tides.md) and `a[i](x)`")
    'see [tides] and `a[i](x)`'
    """
    if "](" not in text and "]:" not in text and "[[" not in text:
        return text
    return _DESTINATION.sub(lambda match: match["code"] or match["label"] or "]" * match[0].startswith("]"), text)
