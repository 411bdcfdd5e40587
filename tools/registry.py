"""Write `ragbench/registry.json`, the entry points of pyproject.toml for the package: python -m tools.registry.

A command has the group and the purpose that the first line of its module gives.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "ragbench" / "registry.json"


def table() -> dict[str, dict[str, dict[str, str]]]:
    """By kind and name, the target of every entry point and, of a command, its group and purpose."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    kinds: dict[str, dict[str, dict[str, str]]] = {}
    for point, target in project["entry-points"]["ragbench"].items():
        kind, _, name = point.partition(".")
        kinds.setdefault(kind, {})[name] = {"target": target} | (_help(name, target) if kind == "command" else {})
    return kinds


def _help(name: str, module: str) -> dict[str, str]:
    file = ROOT / f"{module.replace('.', '/')}.py"
    text = " ".join((ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n\n")[0].split())
    match = re.fullmatch(r"`ragbench ([\w -]+)`(?: \(([^)]+)\))?: (.+)\.", text)
    if match is None or match[1] != name.replace(".", " "):
        raise SystemExit(f"{file} must begin with: `ragbench {name.replace('.', ' ')}` (GROUP): PURPOSE.")
    return ({"task": match[2]} if match[2] else {}) | {"about": match[3]}


def text() -> str:
    """The text of the file."""
    return json.dumps(table(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
