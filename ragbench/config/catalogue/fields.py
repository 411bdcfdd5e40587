"""The keys of a class or of a loader of data, read from its source: name, default, and the comment after it.

Nothing is imported, so that listing stays fast. A default is written as a plain value, a constant of a module of
ragbench, or `field(default_factory=...)` of either; `tests/test_catalogue.py` compares with the classes themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ragbench.base.build import TARGET
from ragbench.config.catalogue.nodes import Leaf, Node, text_of

_ROOT = Path(__file__).resolve().parents[3]
_NOT_CONFIGURED = ("topics",)  # a loader's parameter that commands set
_EMPTY: Mapping[str, Any] = {"dict": {}, "list": [], "tuple": []}


def fields_of(target: str) -> Mapping[str, Leaf]:
    """The fields of a dataclass, or the parameters of a function; none for what is not a part of ragbench.

    The value is None where a user must give one.
    """
    module, _, name = target.rpartition(".")
    return _fields(module, name) if module.startswith("ragbench.") else {}


def filled(node: Node, path: str, classes: Mapping[str, str]) -> Node:
    """A node below the key `path` with every key of its classes, and of the nodes in it.

    A class is named by `_target_`, else in `classes` by the key of a section, `index.dense`, and by what the section
    says about its kind, `topics.kind=derived`.
    """
    inner = {
        key: filled(value, f"{path}.{key}".lstrip("."), classes) if isinstance(value, Mapping) else value
        for key, value in node.items()
    }
    values = {key: value.value for key, value in node.items() if isinstance(value, Leaf)}
    names = [path, *(f"{path}.{key}={value}" for key, value in values.items())]
    of_node = [values[TARGET]] if TARGET in values else [classes[name] for name in reversed(names) if name in classes]
    fields = {name: field for target in of_node for name, field in fields_of(str(target)).items()}
    first = {key: value for key, value in inner.items() if key.startswith("_")}
    for key, value in inner.items():
        if key in fields and isinstance(value, Leaf) and not value.comment:
            inner[key] = Leaf(value.value, value.text, fields[key].comment)
    return {**first, **fields, **inner}


def is_installed(target: str) -> bool:
    """Whether the module of a class is there, which only that of an extra may not be."""
    module = target.rpartition(".")[0]
    return not module.startswith("ragbench.extras.") or _path(module).is_file()


@dataclass(frozen=True)
class _StageEntry:
    """A stage whose class makes its switch: `{switch}=on`, before or after a `neighbour` in `order`."""

    switch: str
    target: str
    side: str
    neighbour: str
    description: str


@cache
def stage_entries() -> tuple[_StageEntry, ...]:
    """The stages of ragbench whose classes have `switch` and `place`, as `place = {"before": "cut"}`."""
    package, entries = _ROOT / "ragbench", []
    for path in (*sorted(package.glob("search/stages/*.py")), *sorted(package.glob("extras/*/stages/*.py"))):
        if "    switch: ClassVar" not in path.read_text(encoding="utf-8"):
            continue
        module = ".".join(path.relative_to(_ROOT).with_suffix("").parts)
        for name, node in _module(module).defined.items():
            values = _class_values(node) if isinstance(node, ast.ClassDef) else {}
            if "switch" in values:
                ((side, neighbour),) = ast.literal_eval(values["place"]).items()
                summary = " ".join(docstring(f"{module}.{name}").partition("\n\n")[0].split())
                switch = ast.literal_eval(values["switch"])
                entries.append(_StageEntry(switch, f"{module}.{name}", side, neighbour, summary))
    return tuple(entries)


def _class_values(node: ast.ClassDef) -> dict[str, Any]:
    """The expressions of the annotated names in the body of a class."""
    annotated = [statement for statement in node.body if isinstance(statement, ast.AnnAssign)]
    return {ast.unparse(statement.target): statement.value for statement in annotated}


def docstring(target: str) -> str:
    """The docstring of a class of ragbench; empty when it has none."""
    module, _, name = target.rpartition(".")
    return ast.get_docstring(_module(module).defined[name]) or ""


@dataclass(frozen=True)
class _Module:
    """A module as text: its lines, the statement that defines each name, the module that each name is imported from."""

    lines: list[str]
    defined: Mapping[str, Any]
    imported: Mapping[str, tuple[str, str]]


def _path(module: str) -> Path:
    path = _ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@lru_cache(maxsize=256)
def _module(name: str) -> _Module:
    path = _path(name)
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    defined: dict[str, ast.stmt] = {}
    imported: dict[str, tuple[str, str]] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            imported.update({alias.name: (node.module, alias.name) for alias in node.names})
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            defined[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined.update({ast.unparse(target): node for target in targets})
    return _Module(text.splitlines(), defined, imported)


@lru_cache(maxsize=256)
def _fields(module_name: str, name: str) -> Mapping[str, Leaf]:
    """The fields of a class or function, those of the classes it extends first."""
    module = _module(module_name)
    node = module.defined.get(name)
    fields: dict[str, Leaf] = {}
    if isinstance(node, ast.ClassDef):
        for base in reversed(node.bases):
            origin, inherited = module.imported.get(ast.unparse(base), (module_name, ast.unparse(base)))
            fields.update(fields_of(f"{origin}.{inherited}"))
        fields.update(_of_class(node, module))
    elif isinstance(node, ast.FunctionDef):
        fields.update(_of_function(node, module))
    return fields


def _of_class(node: ast.ClassDef, module: _Module) -> Iterator[tuple[str, Leaf]]:
    if not any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        return
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or ast.unparse(statement.annotation).startswith("ClassVar"):
            continue
        keywords = statement.value.keywords if isinstance(statement.value, ast.Call) else []
        if not any(keyword.arg == "metadata" for keyword in keywords):  # which code sets
            yield ast.unparse(statement.target), _leaf(statement.value, statement, module)


def _of_function(node: ast.FunctionDef, module: _Module) -> Iterator[tuple[str, Leaf]]:
    parameters = node.args.args
    defaults = [None] * (len(parameters) - len(node.args.defaults)) + node.args.defaults
    for parameter, default in zip(parameters, defaults, strict=True):
        if parameter.arg not in _NOT_CONFIGURED:
            yield parameter.arg, _leaf(default, default or parameter, module)


def _leaf(default: ast.expr | None, commented: ast.AST, module: _Module) -> Leaf:
    value = _default(default, module)
    return Leaf(value, text_of(value), _comment(commented, module))


def _comment(node: ast.AST, module: _Module) -> str:
    """The comment on the line where a node ends, else the comment lines above it."""
    first, last, column = node.lineno, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
    comment = str(module.lines[last - 1].encode()[column:].decode()).partition("# ")[2].strip()
    if comment and not comment.startswith(("type:", "noqa")):
        return comment
    above: list[str] = []
    while module.lines[first - 2].lstrip().startswith("#"):
        first -= 1
        above.insert(0, module.lines[first - 1].strip().lstrip("#").strip())
    return " ".join(above)


def _default(node: ast.expr | None, module: _Module) -> Any:
    """The plain value of an expression, a list for a tuple; None without a default."""
    if node is None:
        return None
    if isinstance(node, ast.Name):
        inner = module.defined.get(node.id)
        if isinstance(inner, (ast.Assign, ast.AnnAssign)):
            return _default(inner.value, module)
        origin, name = module.imported[node.id]
        return _default(ast.Name(name), _module(origin))
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("get_args"):
        return _default(node.args[0], module)
    if isinstance(node, ast.Subscript):  # Literal[...]
        return _default(node.slice, module)
    if isinstance(node, ast.Call):  # field(default_factory=...)
        factory = node.keywords[0].value
        return _default(factory.body, module) if isinstance(factory, ast.Lambda) else _EMPTY[ast.unparse(factory)]
    return _plain(ast.literal_eval(node))


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value
