"""Documents that a package keeps as JSON: records, or elements of XML, to markdown.

A record has its values under names; an element, as xml-js writes it, has a `name` and `children`. Both are read alike:
what is named in the list of collections is looked for at any depth, the first title counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragbench.boundary.json import read_json

_MOST_BYTES = 5_000_000


def markdown(content: bytes, stem: str, names: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """A name of a file and its markdown for each record in JSON, which is one record or a list of them.

    `names`: `title` and `text` (a list) are kept; elements named `heading` and `paragraph` become these. A record
    without title or text is excluded. Raises BoundaryError for what is not JSON.
    """
    read = read_json(content, max_bytes=_MOST_BYTES)
    for record in read if isinstance(read, list) else [read]:
        title = next((_words(field) for field in _named(record, str(names["title"]))), "")
        blocks = [block for name in names["text"] for field in _named(record, name) for block in _blocks(field, names)]
        if title and blocks:
            file = re.sub(r"\W+", "-", title.lower()).strip("-") if isinstance(read, list) else stem
            yield f"{file}.md", "\n\n".join([f"# {title}", *blocks]) + "\n"


def _named(value: Any, name: str) -> Iterator[Any]:
    """What stands under a name, the outermost only, in the order of the record."""
    if isinstance(value, list):
        for item in value:
            yield from _named(item, name)
    elif isinstance(value, dict):
        if value.get("name") == name and "children" in value:
            yield value["children"]
        elif name in value and "children" not in value:
            yield value[name]
        else:
            yield from _named(list(value.values()), name)


def _words(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("text") or value.get("children") or ""
    return value if isinstance(value, str) else " ".join("".join(map(_words, value)).split())


def _blocks(value: Any, names: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _blocks(item, names)
        return
    name = value.get("name") if isinstance(value, dict) else None
    if name is not None and name not in (names.get("heading"), names.get("paragraph")):
        yield from _blocks(value.get("children", []), names)
    elif text := _words(value):
        yield f"## {text}" if name is not None and name == names.get("heading") else text
