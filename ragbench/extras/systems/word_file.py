"""Word documents, seed 004's third kind of files, as markdown."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docx.table import Table
    from docx.text.paragraph import Paragraph

_MOST_BYTES = 100_000_000  # unpacked; a small file may unpack to anything

_PROPERTIES = {
    "title": "title",
    "subject": "description",
    "author": "author",
    "keywords": "keywords",
    "category": "category",
}

_UNREADABLE = (zipfile.BadZipFile, KeyError, ValueError, AttributeError, OSError, RuntimeError)
"""What python-docx raises for damaged files, in addition to its own errors."""
_MARKUP = re.compile(r"(?:#{1,6}|[-*+>]|```|~~~|---)(?:\s|$)")


class NotWord(ValueError):
    """The bytes are not a readable Word document; the message continues a sentence that begins with "it"."""


def to_markdown(raw: bytes) -> str:
    """The bytes of a Word file as markdown. Raises NotWord."""
    import docx
    from docx.opc.exceptions import OpcError
    from lxml.etree import LxmlError

    try:
        with zipfile.ZipFile(BytesIO(raw)) as parts:
            if sum(part.file_size for part in parts.infolist()) > _MOST_BYTES:
                raise NotWord(f"unpacks to more than {_MOST_BYTES // 1_000_000} MB")
        document = docx.Document(BytesIO(raw))
        properties = document.core_properties
        named = {name: str(getattr(properties, key) or "") for key, name in _PROPERTIES.items()}
        head = [f"{name}: {json.dumps(text, ensure_ascii=False)}" for name, text in named.items() if text.strip()]
        blocks = [*_blocks(document.iter_inner_content())]
    except NotWord:
        raise
    except (OpcError, LxmlError, *_UNREADABLE) as error:
        raise NotWord(f"is not a Word document ({type(error).__name__})") from None
    front = "---\n" + "\n".join(head) + "\n---\n" if head else ""
    return front + "\n\n".join(blocks) + "\n"


def _blocks(content: Iterator[Paragraph | Table]) -> Iterator[str]:
    """The blocks of the document; list items that follow each other make one block."""
    from docx.table import Table

    items: list[str] = []
    for block in content:
        table = isinstance(block, Table)
        style = "" if table or block.style is None else str(block.style.name)
        text = _table(block) if isinstance(block, Table) else _text(block)
        if style.startswith("List") and text:
            items.append(f"{'1.' if 'Number' in style else '-'} {text}")
            continue
        if items:
            yield "\n".join(items)
            items = []
        level = re.fullmatch(r"Heading ([1-9])", style)
        if level or style == "Title":
            yield f"{'#' * min(6, int(level[1]) if level else 1)} {text}"
        elif text:
            yield f"\\{text}" if not table and _MARKUP.match(text) else text
    if items:
        yield "\n".join(items)


def _text(paragraph: Paragraph) -> str:
    """The text of a paragraph in one line, with its links."""
    parts = []
    for part in paragraph.iter_inner_content():
        address = getattr(part, "address", "")
        parts.append(f"[{part.text}]({address})" if address else part.text)
    return " ".join("".join(parts).split())


def _table(table: Table) -> str:
    rows = [[" ".join(cell.text.split()).replace("|", "\\|") for cell in row.cells] for row in table.rows]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines[:1], "|" + " --- |" * len(rows[0]), *lines[1:]]) if rows else ""
