"""Count the package: code lines (with a token that is neither comment nor docstring), modules, public names, imports.

python tools/count.py [FOLDER ...] [--by-package] [--json]     default: ragbench, as a whole

`--by-package` prints a row for every package below the folders. A public name is bound at module level by `def`,
`class` or an assignment to one name and does not start with an underscore; the share of imports is that of the lines of
import statements among all code lines.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Count:
    """Figures of one or more modules."""

    modules: int = 0
    lines: int = 0
    code: int = 0
    imports: int = 0
    names: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(*(mine + theirs for mine, theirs in zip(self.values(), other.values(), strict=True)))

    def values(self) -> tuple[int, ...]:
        """The figures in order."""
        return self.modules, self.lines, self.code, self.imports, self.names

    @property
    def share(self) -> float:
        """Import lines among code lines, in percent."""
        return 100 * self.imports / self.code if self.code else 0.0


def docstrings(tree: ast.AST) -> Iterator[ast.Expr]:
    """Yield the docstrings of the module, its classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            statement = node.body[0]
            assert isinstance(statement, ast.Expr)
            yield statement


def code_lines(text: str, tree: ast.AST) -> set[int]:
    """The numbers of the lines that hold code."""
    documented = {line for node in docstrings(tree) for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return lines - documented


def public_names(tree: ast.Module) -> set[str]:
    """The public names that the module binds at its top level, besides imports."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def count(path: Path) -> Count:
    """Count one module."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    code = code_lines(text, tree)
    imported = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    return Count(1, len(text.splitlines()), len(code), len(imported & code), len(public_names(tree)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT / "ragbench"], metavar="FOLDER")
    parser.add_argument("--by-package", action="store_true", help="a row for every package below")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    rows: dict[str, Count] = {}
    for folder in given.folders:
        for path in sorted(folder.rglob("*.py")):
            inside = path.relative_to(folder).parts[:-1]
            key = "/".join((folder.name, *inside[: 2 if inside[:1] == ("extras",) else 1])) if given.by_package else ""
            key = key or str(folder)
            rows[key] = rows.get(key, Count()) + count(path)
    if len(rows) > 1:
        rows["all"] = sum(rows.values(), Count())
    if given.json:
        print(json.dumps({key: asdict(each) | {"import_share": round(each.share, 2)} for key, each in rows.items()}))
        return 0
    print(f"{'':28}{'modules':>9}{'lines':>9}{'code':>9}{'names':>9}{'imports':>9}")
    for key, each in rows.items():
        print(f"{key[-28:]:28}{each.modules:9,}{each.lines:9,}{each.code:9,}{each.names:9,}{each.share:8.1f}%")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
