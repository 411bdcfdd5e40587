"""Every message that ragbench raises, read from the source: short, and without strange words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "ragbench"
ERRORS = re.compile(r"(Config|Corpus|Benchmark|Model|Java|Live|Tracking|Results|Bundle|Ragbench|Index)Error_?$")
LONGEST = 230
"""Characters, each value counted as ten."""
STRANGE = re.compile(
    r"\b(hydra|omegaconf|traceback|invalid|illegal|oops|please|unfortunately|foretold|dataclass field)\b", re.IGNORECASE
)


def text(node: ast.expr) -> str | None:
    """A message with dots for its values, None for what is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(p.value) if isinstance(p, ast.Constant) else "." * 10 for p in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return f"{text(node.left) or ''}{text(node.right) or ''}"
    return None


def messages() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if ERRORS.search(name) and (said := text(node.args[0])):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", said


def test_messages_are_short_and_plain() -> None:
    found = list(messages())
    assert len(found) > 200
    wrong = [
        f"{where}: {said}"
        for where, said in found
        if len(said) > LONGEST or "\n" in said or STRANGE.search(said) or said.rstrip(".").endswith("!")
    ]
    assert wrong == []
