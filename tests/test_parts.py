"""Optional parts: registered by entry points, loaded by nobody who does not ask, and left out without harm."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from ragbench.base import registry
from ragbench.base.types import ConfigError
from tests import package_layers
from tools import registry as registry_file

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = sorted(name for name in package_layers.read() if name.startswith("extras/"))
OPTIONAL = (
    "ragbench.extras.studio",
    "ragbench.extras.tracking",
    "ragbench.extras.ship.serving",
    "ragbench.extras.report",
    "ragbench.report",
    "ragbench.experiment",
    "ragbench.extras.collect.topics",
    *(f"ragbench.extras.export.{name}" for name in registry.names("export")),
    *("mlflow", "fastapi", "uvicorn", "plotly", "hydra", "lightgbm", "optuna"),
)
SEARCH = """
import sys
import ragbench
print("after import:", *sorted(name for name in sys.modules if name.startswith("ragbench.")))
from ragbench.extras.ship.deployment import load
with load(sys.argv[1]) as bundle:
    assert bundle.search("lamps")
print("after search:", *sorted(sys.modules))
"""
STRANGER = """
from ragbench.extras.export.file_format import FileFormat

FORMAT = FileFormat(".csv", lambda settings, origin, version: ("a,b\\n", []))
DESCRIPTION, EXAMPLES = "Say hello.", "examples:\\n  ragbench hello\\n"


def add_arguments(parser):
    parser.add_argument("who", nargs="?", default="world")


def main(arguments):
    from ragbench.base import registry

    print(f"hello {arguments.who}: {' '.join(registry.names('export'))}")
    return 0
"""
WITHOUT = """
import importlib, os, pathlib, pkgutil, sys
import ragbench

def read(missing):
    found = [each.name for each in pkgutil.walk_packages(ragbench.__path__, "ragbench.")]
    assert not [name for name in found for extra in missing if name.startswith(f"ragbench.extras.{extra}")]
    for name in found:
        if name != "ragbench.__main__":
            importlib.import_module(name)

def without(missing):
    global ragbench
    for name in [name for name in sys.modules if name.split(".")[0] == "ragbench"]:
        del sys.modules[name]
    for extra in missing:
        os.rename(f"ragbench/extras/{extra}", f"gone-{extra}")
    importlib.invalidate_caches()
    import ragbench
    from ragbench.commands import SUMMARY, cli
    assert "search" in SUMMARY and not set(missing) & {"studio"} & set(SUMMARY)
    read(missing)
    assert cli.main(["list", "experiments"]) == 0

read([])  # the packages of others stay loaded
for each in sys.argv[1:]:
    missing = each.split(",")
    print("without", each, flush=True)
    if not (child := os.fork()):
        without(missing)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, each
    for path in pathlib.Path().glob("gone-*"):
        path.rename(f"ragbench/extras/{path.name[5:]}")
"""


def python(*words: str, cwd: Path, **more: str) -> str:
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more}  # plug-ins take seconds to load
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, cwd=cwd, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_search_loads_no_optional_part(small_bundle: Path, tmp_path: Path) -> None:
    first, then = python("-c", SEARCH, str(small_bundle), cwd=tmp_path, PYTHONPATH=str(ROOT)).splitlines()
    assert first == "after import:"
    loaded = then.split()
    assert not [name for name in loaded if any(name == part or name.startswith(f"{part}.") for part in OPTIONAL)]


def test_plugin_package_registers_like_our_parts(tmp_path: Path) -> None:
    (tmp_path / "stranger.py").write_text(STRANGER)
    facts = tmp_path / "stranger-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[ragbench]\nexport.csv = stranger:FORMAT\ncommand.hello = stranger\nexport.gone = nowhere_at_all\n"
    )
    path = os.pathsep.join((str(ROOT), str(tmp_path)))
    printed = python("-m", "ragbench", "hello", "you", cwd=tmp_path, PYTHONPATH=path)
    formats = "ragbench sqlite postgres ragdocs librarian opensearch elasticsearch config csv"
    assert printed == f"hello you: {formats}\n"
    assert "csv" in python("-m", "ragbench", "export", "--help", cwd=tmp_path, PYTHONPATH=path)


def test_registry_file_has_the_entry_points_of_the_project() -> None:
    assert registry_file.FILE.read_text(encoding="utf-8") == registry_file.text(), "run: python -m tools.registry"


def test_registry_objects_of_every_name_are_there() -> None:
    for kind in get_args(registry.Kind):
        for name in registry.entries(kind):
            assert registry.find(kind, name) is not None, f"{kind}.{name}"


def test_unknown_part_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"--format must be one of ragbench, .*, got pdf"):
        registry.load("export", "pdf", "--format")


def needed_by(extra: str) -> set[str]:
    """The extras that cannot be imported without an extra, which is one of them."""
    laws, needing = package_layers.read(), {extra}
    while more := {name for name in EXTRAS if needing & set(laws[name].imports)} - needing:
        needing |= more
    return needing


def tree(tmp_path: Path) -> dict[str, Any]:
    """A copy of what ragbench is made of; the place of a process in it."""
    for folder in ("ragbench", "conf", "corpus", "qrels"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return {"cwd": tmp_path, "PYTHONPATH": str(tmp_path)}


@pytest.mark.slow
def test_every_extra_can_be_deleted(tmp_path: Path) -> None:
    """Without an extra and those that need it, or without any, what is left imports and composes."""
    sets = [needed_by(extra) for extra in EXTRAS] + [set(EXTRAS)]
    missing = [",".join(sorted(name.removeprefix("extras/") for name in each)) for each in sets]
    printed = python("-c", WITHOUT, *missing, **tree(tmp_path))
    assert printed.count("\n│ phase1 ") == len(sets), printed


@pytest.mark.slow
def test_extras_can_all_be_deleted(tmp_path: Path) -> None:
    """Without any extra, what is left also measures, and its tests pass."""
    here = tree(tmp_path)
    for name in EXTRAS:
        shutil.rmtree(tmp_path / "ragbench" / name)
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("extras"))
    tea = tmp_path / "tests" / "data" / "tea"
    data = ("data=vault", f"data.corpus={tea / 'vault'}", f"data.queries={tea / 'relevant.csv'}", "split=all")
    words = ("run", "-m", "exp=baseline,phase1", "latency.enabled=false", *data)
    shown = python("-m", "ragbench", *words, **here)
    assert "next: ragbench compare\n" in shown and not re.search("MLflow|report|export|diagnose", shown), shown
    assert not [*tmp_path.rglob("mlflow.db"), *tmp_path.rglob("report.html")]
    rest = ("tests/engine/test_pipeline.py", "tests/stages/test_fuse.py", "tests/evidence/test_statistics.py")
    python("-m", "pytest", "-q", "-x", "-p", "pytest_benchmark.plugin", *rest, **here)
