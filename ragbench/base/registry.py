"""The registry: names of everything but the configuration, in the core, in an extra, or in another package.

An entry point `KIND.NAME` of the group `ragbench` names an object, and a decorator registers one when its module is
imported. An entry point without a kind is a plug-in: a module that is imported for what it registers, as those in
RAGBENCH_PLUGINS (separated by commas) are. The entry points of this package are read from `registry.json`, which
`python -m tools.registry` writes from pyproject.toml, because reading those of an installation takes as long as all of
`ragbench --help`. `ragbench/extras/NAME` may be missing, and its names with it: the core never imports an extra.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from ragbench.base.types import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = Literal[
    "api",
    "command",
    "encoder",
    "execution",
    "export",
    "hook",
    "loader",
    "measure",
    "model",
    "options",
    "part",
    "reranker",
    "retriever",
    "source",
    "stage",
]
"""`api`: names of `import ragbench`. `command`: modules as in `ragbench.commands`. `execution`:
`ragbench.experiment.execution.Execution`. `export`: formats of `ragbench export`. `hook`: functions that the
core calls where an extra has one. `loader`: makes a benchmark from the options of `data`. `model`: makes a model from
its specification, by back end or scheme. `options`: modules whose classes say `@option` or `@section`; a package stands
for all modules in it. `part` and `source`: parts of an index (`ragbench.index.parts`). Others: what the decorator of
that name decorates."""

GROUP, VARIABLE = "ragbench", "RAGBENCH_PLUGINS"
_OF_PLUGINS = ("encoder", "measure", "part", "reranker", "retriever", "stage")

_PACKAGE = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 -- pathlib would slow `ragbench --help` down

_registered: dict[tuple[Kind, str], Any] = {}


def register(kind: Kind, name: str, value: Any) -> None:
    """Keep a value under a name; it replaces an earlier one, because a notebook cell may run again."""
    _registered[kind, name] = value


def names(kind: Kind) -> tuple[str, ...]:
    """All names of a kind, those of this package first. ConfigError for a plug-in that fails."""
    if kind in _OF_PLUGINS:
        _import_plugins()
    others = (name.removeprefix(f"{kind}.") for name in _installed() if name.startswith(f"{kind}."))
    registered = sorted(name for registered_kind, name in _registered if registered_kind == kind)
    return tuple(dict.fromkeys((*entries(kind), *others, *registered)))


def find(kind: Kind, name: str) -> Any:
    """The object of a name, None for an unknown one. ConfigError for one that cannot be imported."""
    if (kind, name) in _registered:
        return _registered[kind, name]
    if (entry := entries(kind).get(name)) is not None:
        return _imported(kind, name, entry["target"])
    if (point := _installed().get(f"{kind}.{name}")) is not None:
        return _imported(kind, name, point.value)
    if kind in _OF_PLUGINS:
        _import_plugins()
    return _registered.get((kind, name))


def load(kind: Kind, name: str, option: str) -> Any:
    """The object of a name, the value of `option`. ConfigError for an unknown one and one that cannot be imported."""
    found = find(kind, name)
    if found is None:
        raise ConfigError(f"{option} must be one of {', '.join(names(kind))}, got {name}")
    return found


def required(kind: Kind, name: str, user: str) -> Any:
    """The object of a name that an extra has. ConfigError, which names what uses it, where no installed one has."""
    found = find(kind, name)
    if found is None:
        raise ConfigError(f"{user} needs a part of ragbench that is not installed: install ragbench[all]")
    return found


def import_all(kind: Kind) -> None:
    """Import every module of a kind, for what it registers; a package stands for all modules in it."""
    import pkgutil

    for module in (find(kind, name) for name in names(kind)):
        for _, name, _ in pkgutil.iter_modules(vars(module).get("__path__", ()), f"{module.__name__}."):
            importlib.import_module(name)


@cache
def entries(kind: Kind) -> Mapping[str, Mapping[str, str]]:
    """The installed names of this package of a kind, each with its `target` and, of a command, `task` and `about`."""
    return {name: entry for name, entry in _table().get(kind, {}).items() if _is_there(entry["target"])}


def missing_package(error: BaseException) -> str:
    """The sentence for a package that ragbench imports and that is not installed; "" for any other error."""
    if not isinstance(error, ModuleNotFoundError) or (error.name or "ragbench").startswith("ragbench"):
        return ""
    import re
    import traceback
    from importlib.metadata import requires

    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    rooms = re.findall(r"ragbench.extras.(\w+)", " ".join(files))
    if not rooms and not (files and files[-1].startswith(_PACKAGE)):
        return ""
    requirements = " ".join(requires(GROUP) or ())
    extras = [name for name in rooms if f"extra == '{name}'" in requirements]  # some need no packages of their own
    distribution = f"'ragbench[{extras[0]}]'" if extras else "ragbench"
    return f"this command needs the package {str(error.name).partition('.')[0]}: pip install {distribution}"


@cache
def _table() -> Mapping[Kind, Mapping[str, Mapping[str, str]]]:
    import json

    with open(f"{_PACKAGE}/registry.json", encoding="utf-8") as file:  # noqa: PTH123
        table: dict[Kind, Mapping[str, Mapping[str, str]]] = json.load(file)
    return table


@cache
def _installed() -> Mapping[str, EntryPoint]:
    """The entry points of other packages that have a kind, by `KIND.NAME`."""
    return {point.name: point for point in _of_others() if _has_kind(point) and _is_there(point.value)}


def _has_kind(point: EntryPoint) -> bool:
    return point.name.partition(".")[0] in get_args(Kind)


@cache
def _of_others() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # late: slow

    points = entry_points(group=GROUP)
    own = [dist for dist in {point.dist for point in points} if dist is not None and dist.name == GROUP]  # name: slow
    return tuple(point for point in points if point.dist not in own)


def _is_there(target: str) -> bool:
    """Whether a module is installed; neither it nor the packages of ragbench that it is in are imported."""
    module = target.partition(":")[0].strip()
    if module.startswith("ragbench."):
        path = f"{_PACKAGE}/{module.partition('.')[2].replace('.', '/')}"
        return os.path.exists(f"{path}.py") or os.path.exists(f"{path}/__init__.py")  # noqa: PTH110
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _imported(kind: Kind, name: str, target: str) -> Any:
    module, _, attribute = (part.strip() for part in target.partition(":"))
    try:
        made = importlib.import_module(module)
        return getattr(made, attribute) if attribute else made
    except (ImportError, AttributeError) as error:
        if sentence := missing_package(error):
            raise ConfigError(sentence) from error
        raise ConfigError(f"the {kind} {name} cannot be used ({error}): install {module} again") from error


def _import_plugins() -> None:
    """Import the plug-ins of installed packages and of RAGBENCH_PLUGINS, once. ConfigError for one that fails."""
    _import_installed_plugins()
    for module in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        _import_plugin(module)


@cache
def _import_installed_plugins() -> None:
    from ragbench.base.types import FAILURES

    for point in _of_others():
        if not _has_kind(point):
            try:
                point.load()
            except FAILURES as error:
                reason = _error_text(error)
                raise ConfigError(f"the plug-in '{point.name}' cannot be imported ({reason}): remove it") from error


@cache
def _import_plugin(name: str) -> None:
    from pathlib import Path

    from ragbench.base.types import FAILURES

    file = Path(f"{name}.py")
    try:
        if name.isidentifier() and file.is_file() and importlib.util.find_spec(name) is None:
            spec = importlib.util.spec_from_file_location(name, file.absolute())
            assert spec is not None and spec.loader is not None, "a file of Python has a loader"
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        importlib.import_module(name)
    except FAILURES as error:
        reason = _error_text(error)
        raise ConfigError(f"{VARIABLE} names {name}, which cannot be imported ({reason}): correct it") from error


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
