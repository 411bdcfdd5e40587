"""Every message in the source: short, complete, and without words that no engineer writes.

`python -m tests.test_messages` prints them all with their places.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.sources import parsed

PACKAGE = Path(__file__).resolve().parent.parent / "ragbench"
LONGEST = 200
"""Characters of a line, each value counted as ten."""
STRANGE = re.compile(
    r"\b(illegal|oops|please|unfortunately|foretold|utilize|leverage|whilst|thereof|hence|nonetype|null pointer)\b",
    re.IGNORECASE,
)
DIALECT = re.compile(
    r"\bsurely\b|\b(so|be|is|are|not|no|a|only|how) sure\b|\banew\b|\bwhence\b|\bin place of\b"
    r"|\btakes? the place of\b|\b(nobody|anybody|somebody|everybody|whoever)\b|\bby (words|meaning)\b"
    r"|\bnear-cop(y|ies)\b|\bpersons?\b|\bintervals hold together\b|\blooks? at (the )?test topics\b"
    r"|\bsupposed answer\b|\bof (yours|ours|one's own)\b|\btold\b|\bsearch(es)? for parameters\b"
    r"|\bquestions of people\b|\bpeople's questions\b|\bprocessors?\b|\blabels of links\b"
    r"|\b(costs?|brings?) nothing\b|\bleft (out|for later looks)\b|\bleav(e|es|ing) (it |them )?out\b"
    r"|\blies? (in|below|beside)\b|\bbeside\b|\bperhaps\b|\bonce more\b|\bmend\b|\bpassed over\b|\bstrangers?\b"
    r"|\bthe searches under test\b|\bwhat (it|they|a fit) brings?\b"
    r"|(?<!there )\b(is|are) no (?!longer|more|less|better|worse|different)[a-z]+",
    re.IGNORECASE,
)
"""Words and phrases of a private dialect, for which the field has a term: significant, held-out, lexical, CPU ..."""
ALLOWED = ("You judge search results", "Below is a section of a documentation", "Does the text answer the question?")
"""Beginnings of prompts, whose recorded answers are pinned; in docstrings and pages, text in backticks is code."""
PROSE = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs/*.md")
_LOGS = ("info", "warning", "error")
_ARGUMENT = {"FileWarning": 2, "Finding": 3, "refused": 1, "Lever": 1}
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


def _kind_and_text(node: ast.AST) -> tuple[str, ast.expr | None] | None:
    """The kind of a message, and what holds its text."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in _VARIABLES:
        return "variable", node.value
    if not isinstance(node, ast.Call):
        return None
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    where = _ARGUMENT.get(name, 0)
    held = node.args[where] if len(node.args) > where else None
    if re.search(r"(Error|Refused)_?$", name) or name in _ARGUMENT:
        return "error", held
    if name == "print":
        return "print", held
    logged = name in _LOGS and isinstance(node.func, ast.Attribute) and "log" in ast.unparse(node.func.value).lower()
    return ("log", held) if logged else None


@cache
def messages() -> list[Message]:
    messages = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(parsed(path)):
            kind_and_text = _kind_and_text(node)
            told = text(kind_and_text[1]) if kind_and_text else None
            if kind_and_text and told and " " in told.strip():
                messages.append(
                    Message(kind_and_text[0], f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}", told)
                )
    return messages


def test_messages_of_every_kind_are_collected() -> None:
    counts = Counter(message.kind for message in messages())
    # Commands that were deleted took prints and log lines with them.
    assert counts["error"] > 550 and counts["print"] > 45 and counts["log"] > 35 and counts["variable"] > 15, counts


def test_messages_are_short_and_plain() -> None:
    wrong = [
        message
        for message in messages()
        if any(len(line) > LONGEST for line in message.text.splitlines())
        or STRANGE.search(message.text)
        or message.text.rstrip(".").endswith("!")
    ]
    assert wrong == []


def test_error_messages_are_one_line() -> None:
    wrong = [
        message
        for message in messages()
        if message.kind == "error"
        and ("\n" in message.text or message.text != message.text.strip() or "  " in message.text)
        and not message.text.endswith((": ", " "))
    ]
    assert wrong == []


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a module with a space: messages, help texts, docstrings without the code in backticks."""
    tree = parsed(path)
    defined = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, defined) and ast.get_docstring(node, clean=False)
    }  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, re.sub(r"`[^`]*`", "", node.value) if id(node) in docstrings else node.value


def _pages() -> Iterator[tuple[str, str]]:
    """The pages for readers, without code, tables and the targets of links."""
    for pattern in PROSE:
        for path in sorted(PACKAGE.parent.glob(pattern)):
            text = re.sub(
                r"^(```|~~~).*?^(```|~~~)\s*$|`[^`\n]*`|\]\([^)]*\)",
                "",
                path.read_text(encoding="utf-8"),
                flags=re.S | re.M,
            )
            yield str(path.relative_to(PACKAGE.parent)), text


def dialect() -> list[tuple[str, str]]:
    """Every place with a phrase of the dialect."""
    places = [
        (f"{path.relative_to(PACKAGE)}:{line}", text)
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in _strings(path)
    ]
    return [
        (where, " ".join(text[max(0, hit.start() - 40) : hit.end() + 40].split()))
        for where, text in [*places, *_pages()]
        if not text.startswith(ALLOWED)
        for hit in DIALECT.finditer(text)
    ]


def test_dialect_is_recognised() -> None:
    assert DIALECT.search("It is surely better") and DIALECT.search("a score is no number")
    assert len(list(_pages())) > 20


def test_texts_use_the_terms_of_the_field() -> None:
    assert dialect() == []


if __name__ == "__main__":
    for message in messages():
        print(f"{message.kind:8} {message.where:40} {message.text}")
