"""Records of other collections as documents, and the names that judgments may use for a document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from ragbench.base.errors import BenchmarkError
from ragbench.base.fingerprint import digest
from ragbench.base.types import Document, Section
from ragbench.corpus.links import fold, resolve_links
from ragbench.corpus.metadata import read_metadata
from ragbench.corpus.reader import parse_document
from ragbench.corpus.sections import slug
from ragbench.corpus.words import is_untitled

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark

_NOT_IN_ID = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MARKDOWN_SUFFIX = re.compile(r"\.(md|markdown)$", re.IGNORECASE)
_COMPARED = 2000
IDS = ("_id", "id", "docno", "doc_id", "docid")
TEXTS = ("text", "contents", "content", "body")


@dataclass(frozen=True)
class Form:
    """How to read the text of a record.

    `markdown`: as markdown with headings, code blocks and links; else as plain text, one section. `title_in_text`: put
    the title before the text as its heading, so that a search of the text finds it; else only in `Document.title`.
    """

    markdown: bool = False
    title_in_text: bool = True


def identifier(name: Any) -> str:
    """An id as a TREC file can hold it: white space and unprintable characters as `%XX`, outer blanks dropped."""
    return _NOT_IN_ID.sub(lambda m: quote(m[0].encode("utf-8", "surrogatepass")), str(name).strip())


def file_names(benchmark: Benchmark) -> dict[str, str]:
    """By docno, the path that stands for it in run files and judgments, where a folder of files was read.

    Empty for other collections: their docnos are the ids that people know.
    """
    source = (benchmark.documents_source or {}).get("data", {})
    if source.get("loader") != "vault":
        return {}
    return {document.docno: identifier(document.path) for document in benchmark.documents}


def make_document(docno: str, title: str, text: str, metadata: Mapping[str, Any], form: Form) -> Document:
    """One document from a record; `metadata` replaces frontmatter (author, keywords, date ...)."""
    title = " ".join(title.split())
    headed = bool(title) and form.title_in_text and not (form.markdown and text.lstrip().startswith(("# ", "---")))
    body = (f"# {title}\n\n{text}" if text.strip() else f"# {title}\n") if headed else text
    if form.markdown:
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


class Names:
    """Finds documents by the names that users and tools use: docno, path, file name, or wikilink."""

    def __init__(self, documents: Iterable[Document]) -> None:
        """The names of these documents."""
        self._documents = {document.docno: document for document in documents}

    def document(self, name: str) -> str | None:
        """The docno for a docno, a path with or without `.md`, or a file name that only one document has; else None."""
        text = name.strip().removeprefix("[[").removesuffix("]]").split("|", 1)[0].strip().replace("\\", "/")
        text = text.removeprefix("./").lstrip("/")
        for candidate in (identifier(text), self._by_path.get(text), identifier(_MARKDOWN_SUFFIX.sub("", text))):
            if candidate in self._documents:
                return candidate
        last = fold(identifier(_MARKDOWN_SUFFIX.sub("", text)))
        for table in (self._by_lower_case, self._by_file_name):
            if last in table:
                return table[last]
        return None

    def hint(self, name: str) -> str:
        """The end of a sentence about an unknown name: the documents with its file name, else the most similar one.

        A comparison takes about 20 microseconds, so names are not compared with more than 2,000 documents.
        """
        sought = _MARKDOWN_SUFFIX.sub("", name.partition("#")[0].strip().rstrip("/")).casefold()
        near = [docno for docno in self._documents if docno.casefold().rpartition("/")[2] == sought.rpartition("/")[2]]
        if not near and len(self._documents) <= _COMPARED:
            near = get_close_matches(sought, self._documents, n=1, cutoff=0.7)
        return f"; did you mean {' or '.join(near[:3])}?" if near else ""

    def section(self, name: str) -> str | None:
        """The section id of `document#anchor` or `document#Heading`; None when there is none."""
        text = name.strip().removeprefix("[[").removesuffix("]]").split("|", 1)[0]
        # Names and headings may contain `#`: try every one as the separator.
        for position in (position for position, character in enumerate(text) if character == "#"):
            docno = self.document(text[:position])
            anchor = self._anchor(docno, unquote(text[position + 1 :]).strip()) if docno is not None else None
            if anchor is not None:
                return f"{docno}#{anchor}"
        return None

    def _anchor(self, docno: str, heading: str) -> str | None:
        sections = self._documents[docno].sections
        if any(section.anchor == heading for section in sections):
            return heading
        named = [section.anchor for section in sections if section.path and slug(section.path[-1]) == slug(heading)]
        return named[0] if len(named) == 1 else None

    @cached_property
    def _by_path(self) -> dict[str, str]:
        return {document.path: docno for docno, document in self._documents.items()}

    @cached_property
    def _by_lower_case(self) -> dict[str, str]:
        return _unique((fold(docno), docno) for docno in self._documents)

    @cached_property
    def _by_file_name(self) -> dict[str, str]:
        return _unique((fold(docno.rpartition("/")[2]), docno) for docno in self._documents)


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    listed = list(pairs)
    counts = Counter(key for key, _ in listed)
    return {key: value for key, value in listed if counts[key] == 1}


def _one_section(title: str, text: str) -> tuple[Section, ...]:
    if not text.strip():
        return ()
    path = (title,) if title else ()
    return (Section(0, len(path), path, slug(title) if title else "", 0, len(text)),)
