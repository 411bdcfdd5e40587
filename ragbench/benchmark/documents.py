"""Records of other collections as documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragbench.base.document_names import is_untitled
from ragbench.base.fingerprint import digest
from ragbench.base.types import BenchmarkError, Document, Section
from ragbench.corpus.links import resolve_links
from ragbench.corpus.metadata import read_metadata
from ragbench.corpus.reader import parse_document
from ragbench.corpus.sections import slug

IDS = ("_id", "id", "docno", "doc_id", "docid")
TEXTS = ("text", "contents", "content", "body")


def make_document(docno: str, title: str, text: str, metadata: Mapping[str, Any], markdown: bool = False) -> Document:
    """One document from a record; `metadata` replaces frontmatter (author, keywords, date ...).

    The text is read as markdown with headings, code blocks and links, or as plain text, one section. The title stands
    before it as its heading, so that a search of the text finds it.
    """
    title = " ".join(title.split())
    headed = bool(title) and not (markdown and text.lstrip().startswith(("# ", "---")))
    body = (f"# {title}\n\n{text}" if text.strip() else f"# {title}\n") if headed else text
    if markdown:
        parsed, _ = parse_document(docno, docno, body.encode("utf-8", "replace"), 0.0)
        fields = {**metadata, **parsed.frontmatter}
        return replace(
            parsed, title=title or parsed.title, frontmatter=fields, digest=digest(["markdown", title, body, metadata])
        )
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    from_metadata = read_metadata(metadata) if metadata else None
    return Document(
        docno=docno,
        path=docno,
        title=title or docno,
        text=body,
        frontmatter=metadata,
        sections=_one_section(title if headed else "", body),
        code_blocks=(),
        links=(),
        tags=from_metadata.tags if from_metadata else (),
        modified=(from_metadata.modified if from_metadata else None) or 0.0,
        size_bytes=len(body.encode()),
        digest=digest([title, body, metadata]),
    )


def collect(
    located: Iterable[tuple[str, Document]], source: str, markdown: bool
) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """The documents sorted by docno, links resolved if they are `markdown`, and the warnings.

    `located` gives each with its place in the source. BenchmarkError for a repeated id or an empty collection.
    """
    documents: dict[str, Document] = {}
    places: dict[str, str] = {}
    for location, document in located:
        docno = document.docno
        if docno in documents:
            raise BenchmarkError(f"{location} repeats document id '{docno}': the first is at {places[docno]}")
        documents[docno], places[docno] = document, location
    if not documents:
        raise BenchmarkError(f"{source} holds no documents")
    ordered: Sequence[Document] = [documents[docno] for docno in sorted(documents)]
    empty = [d.docno for d in documents.values() if not d.text.strip() and is_untitled(d.title, d.path)]
    warnings = []
    if markdown:
        ordered, link_warnings = resolve_links(ordered)
        warnings += [str(warning) for warning in link_warnings]
    if empty:
        listed = ", ".join(empty[:3]) + (" ..." if len(empty) > 3 else "")
        warnings.append(f"{source}: {len(empty)} document(s) without text and title can never be found: {listed}")
    return tuple(ordered), tuple(warnings)


def _one_section(title: str, text: str) -> tuple[Section, ...]:
    if not text.strip():
        return ()
    path = (title,) if title else ()
    return (Section(0, len(path), path, slug(title) if title else "", 0, len(text)),)
