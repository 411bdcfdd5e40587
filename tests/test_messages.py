"""Every message in the source: short, complete, and without words that no engineer writes.

`python -m tests.test_messages` prints them all with their places.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent / "ragbench"
LONGEST = 200
"""Characters of a line, each value counted as ten."""
STRANGE = re.compile(
    r"\b(illegal|oops|please|unfortunately|foretold|utilize|leverage|whilst|thereof|hence|nonetype|null pointer)\b",
    re.IGNORECASE,
)
_LOGS = ("info", "warning", "error")
_PLACE = {"FileWarning": 2, "Finding": 3, "refused": 1, "Lever": 1}
"""The argument that is a sentence, where it is not the first."""
_VARIABLES = ("message", "reason", "sentence", "caution")


class Message(NamedTuple):
    kind: str
    where: str
    text: str


def text(node: ast.expr | None) -> str | None:
    """A message with dots for its values, None for what is no text; the longer of two."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(p.value) if isinstance(p, ast.Constant) else "." * 10 for p in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return f"{text(node.left) or ''}{text(node.right) or ''}"
    if isinstance(node, ast.IfExp):
        return max(text(node.body) or "", text(node.orelse) or "", key=len)
    return None


def _said(node: ast.AST) -> tuple[str, ast.expr | None] | None:
    """The kind of a message, and what holds its text."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in _VARIABLES:
        return "variable", node.value
    if not isinstance(node, ast.Call):
        return None
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    place = _PLACE.get(name, 0)
    held = node.args[place] if len(node.args) > place else None
    if re.search(r"(Error|Refused)_?$", name) or name in _PLACE:
        return "error", held
    if name in ("print", "say", "_say"):
        return "said", held
    logged = name in _LOGS and isinstance(node.func, ast.Attribute) and "log" in ast.unparse(node.func.value).lower()
    return ("log", held) if logged else None


@cache
def messages() -> list[Message]:
    messages = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = _said(node)
            told = text(found[1]) if found else None
            if found and told and " " in told.strip():
                messages.append(Message(found[0], f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}", told))
    return messages


def test_every_kind_is_found() -> None:
    counts = Counter(message.kind for message in messages())
    assert counts["error"] > 550 and counts["said"] > 70 and counts["log"] > 3 and counts["variable"] > 15, counts


def test_messages_are_short_and_plain() -> None:
    wrong = [
        message
        for message in messages()
        if any(len(line) > LONGEST for line in message.text.splitlines())
        or STRANGE.search(message.text)
        or message.text.rstrip(".").endswith("!")
    ]
    assert wrong == []


def test_an_error_is_one_line() -> None:
    wrong = [
        message
        for message in messages()
        if message.kind == "error"
        and ("\n" in message.text or message.text != message.text.strip() or "  " in message.text)
        and not message.text.endswith((": ", " "))
    ]
    assert wrong == []


if __name__ == "__main__":
    for each in messages():
        print(f"{each.kind:8} {each.where:40} {each.text}")
