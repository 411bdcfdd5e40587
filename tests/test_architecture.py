"""Imports between packages follow the package table; heavy libraries are imported late."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests import package_layers
from tests.sources import parsed

PACKAGE = Path(__file__).resolve().parent.parent / "ragbench"

ROOTS = {("__init__.py",), ("extras", "__init__.py")}

HOUSE = package_layers.read()
ONLY_HOME = {"hydra": {"config"}, "mlflow": {"extras/tracking"}}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts not in ROOTS)


def shown(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def room_of(path: Path) -> str:
    return room_named(path.relative_to(PACKAGE).with_suffix("").parts)


def room_named(parts: Sequence[str]) -> str:
    """The room of a module such as ("extras", "ship", "bundle"): `extras/ship`."""
    return "/".join(parts[:2]) if parts[0] == "extras" else parts[0]


@cache
def imports(path: Path) -> list[str]:
    """Every module a file imports, wherever the statement stands; those for type checking only are excluded."""
    tree = parsed(path)
    hidden = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    imported = []
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            imported += [node.module]
            if node.module == "ragbench":
                imported += [f"ragbench.{alias.name}" for alias in node.names]
    return imported


def test_package_imports_only_what_it_lists() -> None:
    wrong = []
    for path in modules():
        room = room_of(path)
        assert room in HOUSE, f"{room} is not in {package_layers.FILE.name}: add it with its contents and its imports"
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "ragbench" and len(parts) > 1 and not allowed(room, room_named(parts[1:])):
                wrong.append(f"{shown(path)} imports {name}, which {room} does not list")
    assert not wrong, "\n".join(wrong)


def allowed(room: str, other: str) -> bool:
    """Whether a room may import another: an extra may import all of the core, others only what they list."""
    return other in (room, *HOUSE[room].imports) or room.startswith("extras/") != other.startswith("extras")


def test_packages_list_only_packages_above_that_they_import() -> None:
    rooms = list(HOUSE)
    used = {room: set() for room in rooms}
    for path in modules():
        used[room_of(path)] |= {
            room_named(name.split(".")[1:]) for name in imports(path) if name.startswith("ragbench.")
        }
    for number, (room, law) in enumerate(HOUSE.items()):
        assert set(law.imports) <= set(rooms[:number]), f"{room} lists a room below it"
        others = {other for other in used[room] - {room} if room.startswith("extras/") == other.startswith("extras")}
        assert set(law.imports) == others, f"{room} lists what it does not import: {set(law.imports) ^ others}"


def test_core_imports_no_extra() -> None:
    """Each extra can be deleted: the core reaches it by name only. Imports for type checking count, too."""
    imported = set()
    for path in modules():
        if room_of(path).startswith("extras"):
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom):
                dotted = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                dotted = [alias.name for alias in node.names]
            else:
                continue
            imported |= {(shown(path), name) for name in dotted if name.startswith("ragbench.extras")}
    assert imported == set(), "the core imports an extra: let it register itself (ragbench.base.registry)"


def test_architecture_page_shows_the_packages() -> None:
    page = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert package_layers.table(HOUSE) in page, "run: python -m tests.package_layers"


def test_modules_have_no_import_cycles() -> None:
    names = {".".join(("ragbench", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in modules()}
    graph = {name: {imported for imported in imports(path) if imported in names} for name, path in names.items()}
    # CycleError names the circle, where there is one.
    assert set(TopologicalSorter(graph).static_order()) == set(names)


def test_public_classes_have_names_of_their_own() -> None:
    files_by_name: dict[str, list[str]] = {}
    for path in modules():
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files_by_name.setdefault(node.name, []).append(shown(path))
    assert not {name: files for name, files in files_by_name.items() if len(files) > 1}


def test_stages_import_no_other_stage() -> None:
    common = {f"ragbench.search.stages.{shared}" for shared in ("stage", "signals", "agreement")}
    wrong = [
        f"{shown(path)} imports {name}"
        for path in sorted(PACKAGE.rglob("stages/*.py"))
        for name in imports(path)
        if name.split(".")[0] in {"hydra", "omegaconf", "mlflow", "pathlib"}
        or (name.startswith("ragbench.search.stages.") and name not in common)
    ]
    assert not wrong, "\n".join(wrong)


def test_settings_are_not_read_after_the_plan() -> None:
    """What runs after `plan()` reads the plan; a process of its own builds settings from a plain configuration."""
    named = {
        path.stem
        for path in (PACKAGE / "experiment").glob("*.py")
        if any(isinstance(node, ast.Name) and node.id == "Settings" for node in ast.walk(parsed(path)))
    }
    assert named == {"ablate", "run", "coldstart"}


def test_settings_are_read_by_their_types_outside_config() -> None:
    """`settings.config["seed"]` outside `config` is a key whose readers are unknown: Settings has members for it."""
    raw = re.compile(r"\b(settings|base|arm|shared)(\[0\])?\.config\[")
    outside = [path for path in modules() if room_of(path) != "config"]
    assert not [shown(path) for path in outside if raw.search(path.read_text(encoding="utf-8"))]


def test_imports_are_absolute() -> None:
    for path in modules():
        for node in ast.walk(parsed(path)):
            assert not isinstance(node, ast.ImportFrom) or node.level == 0, f"{path.name}:{node.lineno}"


def test_tests_use_no_mocks() -> None:
    mock = re.compile(r"^\s*(from|import) unittest\b", re.M)
    tests = (PACKAGE.parent / "tests").rglob("test_*.py")
    assert not [path for path in tests if mock.search(path.read_text(encoding="utf-8"))]


def test_ruff_and_mypy_are_strict() -> None:
    check = (PACKAGE.parent / "Makefile").read_text(encoding="utf-8").partition("\ncheck:")[2].partition("\n\n")[0]
    assert all(tool in check for tool in ("ruff check .", "ruff format --check .", "mypy"))
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert settings["mypy"]["strict"] and settings["ruff"]["lint"]["select"]


def test_libraries_are_imported_in_one_module() -> None:
    wrong = [
        f"{shown(path)} imports {name}"
        for path in modules()
        for name in imports(path)
        if room_of(path) not in ONLY_HOME.get(name.split(".")[0], {room_of(path)})
    ]
    assert not wrong, "\n".join(wrong)


PARSERS = {
    "json": {"load", "loads", "JSONDecoder"},
    "yaml": {"load", "load_all", "safe_load", "safe_load_all", "full_load", "unsafe_load", "parse"},
}
"""What takes content from outside apart, by module; `ragbench.boundary` does so within limits."""
CONNECTIONS = {
    "httpx",
    "httpcore",
    "requests",
    "aiohttp",
    "urllib.request",
    "http.client",
    "pickle",
    "marshal",
    "shelve",
}


def test_input_is_read_through_the_boundary() -> None:
    wrong = []
    for path in modules():
        if room_of(path) == "boundary" or path == PACKAGE / "extras" / "remote" / "http.py":
            continue
        if path == PACKAGE / "base" / "registry.py":  # reads one file, registry.json, which is a part of the package
            continue
        for node in ast.walk(parsed(path)):
            refused = False
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                refused = node.attr in PARSERS.get(node.value.id, ())
            elif isinstance(node, ast.ImportFrom):
                refused = not PARSERS.get(node.module or "", set()).isdisjoint(alias.name for alias in node.names)
            elif isinstance(node, ast.Import):  # under another name, its calls would not be found
                refused = any(alias.asname and alias.name in PARSERS for alias in node.names)
            if refused:
                wrong.append(f"{shown(path)}:{node.lineno} {ast.unparse(node)}")
        wrong += [
            f"{shown(path)} imports {name}"
            for name in imports(path)
            if any(f"{name}.".startswith(f"{connection}.") for connection in CONNECTIONS)
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_run_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import sys\n"
        "from ragbench.commands import cli\n"
        "assert cli.main(['search', 'how to rotate a key', 'data=vault', sys.argv[1], '--json']) == 0\n"
        "unused = {'torch', 'transformers', 'pyserini', 'sentence_transformers', 'mlflow', 'pandas'}\n"
        "heavy = unused & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    vault = f"data.corpus={PACKAGE.parent / 'tests' / 'data' / 'vault'}"
    done = subprocess.run([sys.executable, "-c", code, vault], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from ragbench.commands import cli\n"
        "assert cli.main(['--help']) == 0\n"
        "heavy = {'numpy', 'pandas', 'hydra', 'mlflow', 'rich', 'faiss', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
