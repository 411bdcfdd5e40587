"""The keys of a class or of a loader of data, read from its source: name, default, and the comment after it.

Nothing is imported, so that listing stays fast. A default is written as a plain value, a constant of a module of
ragbench, or `field(default_factory=...)` of either; `tests/test_catalogue.py` compares with the classes themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ragbench.base.errors import ConfigError

_ROOT = Path(__file__).resolve().parents[3]
_NOT_CONFIGURED = ("topics",)  # a loader's parameter that commands set
_EMPTY: Mapping[str, Callable[[], Any]] = {"dict": dict, "list": list, "tuple": list}
_MOVED = {
    "ragbench.stages.": "ragbench.search.stages.",
    "ragbench.corpus.librarian_chunking.": "ragbench.extras.systems.librarian_chunking.",
    "ragbench.export.engines.live.": "ragbench.extras.engines.live.",
    "ragbench.search.stages.calibrate_evidence.": "ragbench.extras.fit.stages.calibrate_evidence.",
    **{
        f"ragbench.search.stages.{name}.": f"ragbench.extras.systems.stages.{name}."
        for name in (
            *("average", "context", "diverse", "expand_queries", "folder_boost", "graph_boost", "guarantee"),
            *("keywords", "merge", "normalise", "rank_v3", "recall"),
        )
    },
    **{
        f"ragbench.search.stages.live.{name}": f"ragbench.extras.remote.live.stages.{name}"
        for name in ("LiveHttp", "LiveCommand", "LiveMcp", "LivePyserini")
    },
    "ragbench.search.stages.live.": "ragbench.extras.remote.live.external.",
    **{
        f"ragbench.search.stages.{name}.": f"ragbench.search.stages.{new}."
        for new, names in {
            "calibrate": ("calibrate_curve", "confidence"),
            "cut": ("expand_parents",),
            "expand": ("expand_synonyms", "expand_terms", "hyde"),
            "fuse": ("dynamic_weights",),
            "links": ("community", "graph"),
            "redundancy": ("dedup_exact", "dedup_ngram", "dedup_semantic", "limit", "mmr"),
            "retrieve": ("code", "dense", "lexical"),
        }.items()
        for name in names
    },
}
"""Where classes stood before, by the beginning of their name: bundles, results and files of users still say so."""


@dataclass(frozen=True)
class _Field:
    """A key with its default; `value` is None where a user must give one."""

    name: str
    value: Any
    comment: str


def present_name(target: str) -> str:
    """The present name of a class that a bundle, a results folder or a user's file may name by an earlier one."""
    for old, new in _MOVED.items():
        if target.startswith(old):
            return present_name(f"{new}{target.removeprefix(old)}")
    return target


def fields_of(target: str) -> tuple[_Field, ...]:
    """The fields of a dataclass, or the parameters of a function; none for what is not a part of ragbench."""
    module, _, name = present_name(target).rpartition(".")
    return tuple(_named(module, name).values()) if module.startswith("ragbench.") else ()


def is_installed(target: str) -> bool:
    """Whether the module of a class is there, which only that of an extra may not be."""
    module = present_name(target).rpartition(".")[0]
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
            values = _class_variables(node) if isinstance(node, ast.ClassDef) else {}
            if "switch" in values:
                ((side, neighbour),) = values["place"].items()
                summary = docstring(f"{module}.{name}").partition("\n\n")[0]
                entries.append(
                    _StageEntry(values["switch"], f"{module}.{name}", side, neighbour, " ".join(summary.split()))
                )
    return tuple(entries)


def _class_variables(node: ast.ClassDef) -> dict[str, Any]:
    """The plain values of `switch` and `place` in the body of a class."""
    return {
        statement.target.id: ast.literal_eval(statement.value)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and statement.value is not None
        if statement.target.id in ("switch", "place")
    }


def docstring(target: str) -> str:
    """The docstring of a class of ragbench; empty when it has none."""
    module, _, name = target.rpartition(".")
    node = _module(module).defined.get(name)
    if not isinstance(node, ast.ClassDef):
        raise ConfigError(f"{target} names no class in {_path(module)}: install ragbench again")
    return ast.get_docstring(node) or ""


@dataclass(frozen=True)
class _Module:
    """A module as text: its lines, the statement that defines each name, the module that each name is imported from."""

    name: str
    lines: list[str]
    defined: Mapping[str, ast.stmt]
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
            imported.update({alias.asname or alias.name: (node.module, alias.name) for alias in node.names})
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            defined[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined.update({name.id: node for name in targets if isinstance(name, ast.Name)})
    return _Module(name, text.splitlines(), defined, imported)


@lru_cache(maxsize=256)
def _named(module_name: str, name: str) -> Mapping[str, _Field]:
    """The fields of a name by their own names, those of the classes it extends first."""
    module = _module(module_name)
    node = module.defined.get(name)
    if isinstance(node, ast.ClassDef):
        fields: dict[str, _Field] = {}
        for base in reversed(node.bases):
            if isinstance(base, ast.Name):
                inherited = module.imported.get(base.id, (module_name, base.id))
                fields.update(_named(*inherited) if inherited[0].startswith("ragbench.") else {})
        return {**fields, **{field.name: field for field in _of_class(node, module)}}
    if isinstance(node, ast.FunctionDef):
        return {field.name: field for field in _of_function(node, module)}
    return {}


def _of_class(node: ast.ClassDef, module: _Module) -> Iterator[_Field]:
    if not any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        return
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        made_by_code = isinstance(statement.value, ast.Call) and any(
            keyword.arg == "metadata" for keyword in statement.value.keywords
        )
        if not made_by_code and not ast.unparse(statement.annotation).startswith("ClassVar"):
            yield _Field(statement.target.id, _default(statement.value, module), _comment(statement, module))


def _of_function(node: ast.FunctionDef, module: _Module) -> Iterator[_Field]:
    parameters = node.args.args
    defaults = [None] * (len(parameters) - len(node.args.defaults)) + node.args.defaults
    for parameter, default in zip(parameters, defaults, strict=True):
        if parameter.arg not in _NOT_CONFIGURED:
            yield _Field(parameter.arg, _default(default, module), _comment(default or parameter, module))


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
    if isinstance(node, ast.Call):  # of `field`
        (keyword,) = (keyword for keyword in node.keywords if keyword.arg in ("default", "default_factory"))
        value = keyword.value.body if isinstance(keyword.value, ast.Lambda) else keyword.value
        empty = _EMPTY.get(value.id) if isinstance(value, ast.Name) else None
        return _default(value, module) if empty is None else empty()
    return _plain(ast.literal_eval(node))


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value
