"""How much is enough for what stands once, and each number says what it is for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from ragbench.base import minimums

ROOT = Path(minimums.__file__).parent.parent


def test_minimums_have_docstrings() -> None:
    body = ast.parse(Path(minimums.__file__).read_text(encoding="utf-8")).body
    for number, line in enumerate(body):
        if isinstance(line, ast.Assign):
            docstring = body[number + 1]
            assert isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant), ast.unparse(line)


def test_minimums_are_defined_in_one_module() -> None:
    own = re.compile(r"^_?(FEW\w*|LEAST|ENOUGH) = \d", re.M)
    paths = [str(path) for path in ROOT.rglob("*.py") if own.search(path.read_text(encoding="utf-8"))]
    assert paths == []
