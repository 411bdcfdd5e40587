"""An answer as one text for a language model: what the query names apart from what was found (seed 002)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from ragbench.base.types import Hit

_NOT_IN_XML = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def in_xml(hits: Sequence[Hit], filter_results: int) -> str:
    """`<filterResults>` with the first `filter_results` hits and `<searchResults>` with the others; ids count through.

    A named note has the way it was named as `matchType`, a hit of the search the date of its file as `modified`. A part
    without hits is excluded; without any hit there is an empty `<searchResults>`.
    """
    named, ranked = hits[:filter_results], hits[filter_results:]
    parts = []
    if named:
        parts.append(_part("filterResults", (_document(hit, "matchType", hit.matches[0]) for hit in named)))
    if ranked or not named:
        documents = (_document(hit, "modified", hit.metadata.last_modified) for hit in ranked)
        parts.append(_part("searchResults", documents))
    return "\n".join(parts)


def _part(name: str, documents: Iterable[str]) -> str:
    return "\n".join((f"<{name}>", *documents, f"</{name}>"))


def _document(hit: Hit, name: str, value: str) -> str:
    fields = {"id": hit.rank, "title": hit.title, "path": hit.path, name: value}
    heading = " > ".join(hit.header_path)
    fields |= {"heading": heading} if heading else {}
    fields |= {"content": hit.passage}
    inside = "\n".join(f"<{key}>{escape(_printable(str(text)))}</{key}>" for key, text in fields.items())
    return f"<document>\n{inside}\n</document>"


def _printable(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return _NOT_IN_XML.sub("", text)
