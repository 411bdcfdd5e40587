"""What a text continues where a document was cut: the header of its table, the opening of its list or code."""

from __future__ import annotations

import re

_RULE = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_ITEM = re.compile(r"([ \t>]*)(?:[-*+]|\d+[.)])[ \t]+")
_LONGEST = 400  # characters that are repeated
_LOOKS_BACK = 50_000


def opening(text: str, start: int) -> str:
    """The lines to repeat before the characters from `start` on, with a line break at the end; "" where none are.

    Of a table its header, of a list the line that ends in a colon before it and, in a sublist, the items above.
    """
    line_start = text.rfind("\n", 0, start) + 1
    line = text[line_start : (text + "\n").index("\n", start)]
    if not start or text[line_start:start].strip(" \t>") or not ("|" in line or _ITEM.match(line)):
        return ""
    lines = text[max(0, line_start - _LOOKS_BACK) : line_start].split("\n")[:-1]
    found = _of_table(lines) if "|" in line else []
    found = found or (_of_list(lines, line) if _ITEM.match(line) else [])
    shown = "".join(f"{line}\n" for line in found)
    return shown if len(shown) <= _LONGEST else ""


def _of_table(above: list[str]) -> list[str]:
    """The two lines that begin the table to which the line after `above` belongs."""
    for number in range(len(above) - 1, 0, -1):
        if "|" not in above[number] or not above[number].strip(" \t>"):
            return []
        if _RULE.fullmatch(above[number]) and "|" in above[number - 1]:
            return above[number - 1 : number + 1]
    return []


def _of_list(above: list[str], line: str) -> list[str]:
    """The line that introduces the list of an item, and the items that hold it."""
    found: list[str] = []
    indent = _indent(line)
    is_first = True
    for other in reversed(above):
        if not other.strip(" \t>"):
            continue
        item, other_indent = _ITEM.match(other), _indent(other)
        if item and other_indent < indent:
            found.insert(0, other)
            indent = other_indent
        elif not item and other_indent == 0:  # a paragraph before the list, or the end of an item without indentation
            if other.rstrip(" *_").endswith(":") and (found or not is_first):
                found.insert(0, other)
            break
        is_first = False
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t>"))
