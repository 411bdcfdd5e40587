"""The edge of the core: whatever is found by a name, in the core, in an extra, or in another package.

Entry points name objects of several groups (`load`). In a checkout ours are read from pyproject.toml, so that they need
no installation. Commands and parts of an index are found by the names of their modules (`module`), because reading
entry points takes as long as all of `ragbench --help`. `ragbench/extras/NAME` may be missing, together with everything
that it holds: the core never imports one. See docs/extending.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from ragbench.base.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_Group = Literal[
    "ragbench.commands",
    "ragbench.executions",
    "ragbench.exports",
    "ragbench.hooks",
    "ragbench.models",
    "ragbench.options",
]
"""`commands`: modules like those of `ragbench.commands`. `executions`: `ragbench.experiment.execution.Execution`.
`exports`: `ragbench.export.file_format.Format`. `hooks`: functions that the core calls where an extra has one, by the
names in pyproject.toml. `models`: make a model behind an endpoint of its specification, by scheme. `options`: modules
and packages whose classes say `@option` or `@section`."""

_PACKAGE = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 -- pathlib would slow `ragbench --help` down


def names(group: _Group) -> tuple[str, ...]:
    """The names of a group, ours first."""
    return tuple(_points(group))


def load(group: _Group, name: str, option: str) -> Any:
    """An object of a group. ConfigError for an unknown name, given by `option`, and for one that cannot be imported."""
    point = _points(group).get(name)
    if point is None:
        raise ConfigError(f"{option} must be one of {', '.join(names(group))}, got {name}")
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        if sentence := missing_package(error):
            raise ConfigError(sentence) from error
        raise ConfigError(f"{option} {name} cannot be used ({error}): install {point.module} again") from error


def hook(name: str) -> Any:
    """The function that an extra has under this name; None where no installed one has."""
    return load("ragbench.hooks", name, "the hook") if name in _points("ragbench.hooks") else None


def required(name: str, option: str) -> Any:
    """The function that an extra has under this name. ConfigError, which names the option, where none has."""
    function = hook(name)
    if function is None:
        raise ConfigError(f"{option} needs a part of ragbench that is not installed: install ragbench[all]")
    return function


def missing_package(error: BaseException) -> str:
    """The sentence for a package that an extra imports and that is not installed; "" for any other error."""
    if not isinstance(error, ModuleNotFoundError) or (error.name or "ragbench").startswith("ragbench"):
        return ""
    import re
    import traceback

    files = " ".join(frame.filename for frame in traceback.extract_tb(error.__traceback__))
    extras = re.findall(r"ragbench.extras.(\w+)", files)
    package = str(error.name).partition(".")[0]
    return f"this command needs the package {package}: pip install 'ragbench[{extras[0]}]'" if extras else ""


def import_all(group: _Group) -> None:
    """Import every module of a group, for what it registers; a package stands for all modules in it."""
    import importlib
    import pkgutil

    for point in _points(group).values():
        made = point.load()
        for _, name, _ in pkgutil.iter_modules(getattr(made, "__path__", ()), f"{point.module}."):
            importlib.import_module(name)


@cache
def module(kind: Literal["commands", "parts"], name: str) -> str | None:
    """The dotted name of the module of a command or of a part of an index; None where no installed one has it."""
    for folder in (kind, *(f"extras/{extra}/{kind}" for extra in _extras())):
        if name.isidentifier() and os.path.exists(f"{_PACKAGE}/{folder}/{name}.py"):  # noqa: PTH110
            return f"ragbench.{folder.replace('/', '.')}.{name}"
    return None


def is_there(module: str) -> bool:
    """Whether a module is installed; neither it nor the packages of ragbench that it is in are imported."""
    if module.startswith("ragbench."):
        path = f"{_PACKAGE}/{module.partition('.')[2].replace('.', '/')}"
        return os.path.exists(f"{path}.py") or os.path.exists(f"{path}/__init__.py")  # noqa: PTH110
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@cache
def _extras() -> tuple[str, ...]:
    try:
        return tuple(sorted(entry.name for entry in os.scandir(f"{_PACKAGE}/extras") if entry.is_dir()))
    except FileNotFoundError:
        return ()


@cache
def _points(group: _Group) -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # late: slow

    own = _own(group)
    installed = list(entry_points(group=group))
    if own:  # a checkout: what was installed with ragbench may be of an earlier state of it
        installed = [point for point in installed if point.dist is None or point.dist.name != "ragbench"]
    points: dict[str, EntryPoint] = {}
    for point in (*own, *installed):
        if point.name not in points and is_there(point.module):
            points[point.name] = point
    return points


def _own(group: _Group) -> list[EntryPoint]:
    import tomllib
    from importlib.metadata import EntryPoint

    from ragbench.base import locations

    root = locations.checkout()
    if root is None:
        return []
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [EntryPoint(name, value, group) for name, value in project["entry-points"].get(group, {}).items()]
