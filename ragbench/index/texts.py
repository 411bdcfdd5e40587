"""The texts of a chunk table as the other artefacts take them in: fields of words, passages to embed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ragbench.corpus.metadata import Metadata, read_metadata

if TYPE_CHECKING:
    from ragbench.index.chunks import ChunkTable

# The text of a chunk's row for every field the lexical index can hold, by field name.
FIELDS = ("content", "title", "headers", "keywords", "description", "tags", "aliases", "author")


def lexical_rows(table: ChunkTable, names: Sequence[str]) -> Iterable[Mapping[str, str]]:
    """One mapping field -> text for every retrievable chunk, in order. Fields of the document repeat in its chunks."""
    shared = [
        document_fields(title, read_metadata(frontmatter), tags)
        for title, frontmatter, tags in zip(table.titles, table.frontmatter, table.document_column("tags"), strict=True)
    ]
    headings = table.document_column("headings")
    for number, text in enumerate(table.texts(0, table.n_retrievable)):
        document = table.document[number]
        # The path of the first section, then the headings of the further ones that the chunk reaches into.
        further = [headings[document][section] for section in table.sections[number][1:]]
        fields = {
            **shared[document],
            "content": text,
            "headers": " \n".join([*table.header_path(number), *further]),
        }
        yield {name: fields[name] for name in names}


def document_fields(title: str, metadata: Metadata, tags: Iterable[str]) -> dict[str, str]:
    """The searchable fields that a document lends to each of its chunks; a tag counts with all its parts."""
    return {
        "title": title,
        "keywords": " \n".join(metadata.keywords),
        "description": metadata.description,
        "tags": " \n".join(tag.replace("/", " ") for tag in tags),
        "aliases": " \n".join(metadata.aliases),
        "author": " \n".join(metadata.authors),
    }


def passages_of(table: ChunkTable, headings: bool) -> list[str]:
    """The texts to embed, one for every retrievable chunk; with `headings` as `A > B`, a blank line, then the chunk."""
    texts = table.texts(0, table.n_retrievable)
    if not headings:
        return texts
    paths = (" > ".join(table.header_path(number)) for number in range(len(texts)))
    return [f"{path}\n\n{text}" if path else text for path, text in zip(paths, texts, strict=True)]


def headed(table: ChunkTable, chunk: int) -> str:
    """The title of a chunk's document and the headings above it as `Title > A > B`, a blank line, then the chunk."""
    title, path = table.titles[table.document[chunk]], table.header_path(chunk)
    names = path if path[:1] == (title,) else (title, *path)
    return f"{' > '.join(names)}\n\n{table.text(chunk)}"
