"""Python examples run: those of docstrings, and the blocks of pages, which share the names of their page.

A page has a folder of its own with a handbook in `notes/`, questions in `queries.csv`, a bundle in `bundle/` and
judgments of two people in `pool.sample.csv` and `pool.model.csv`.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest

import ragbench
from ragbench.base import locations
from tests.docs.pages import ROOT, blocks, name

BLOCKS = [block for block in blocks() if block.kind == "python" and name(block.page) != "CONTRIBUTING.md"]
PAGES = sorted({block.page for block in BLOCKS if not block.reason})
QUERIES = """text,relevant
how do programs prove their identity,authentication.md
counters,metrics.md
copies of the data at night,backup.md
why is a request slow,slow-requests.md
"""
POOL = "qid,docno,section,grade\nq1,a,a,2\nq1,b,b,0\nq2,a,a,1\nq2,c,c,3\n"


@pytest.fixture
def folder(
    tmp_path: Path, workplace: Path, small_bundle: Path, vault_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    shutil.copytree(vault_folder.parent / "phases", tmp_path / "notes")
    (tmp_path / "queries.csv").write_text(QUERIES, encoding="utf-8")
    for pool in ("pool.sample.csv", "pool.model.csv"):
        (tmp_path / pool).write_text(POOL, encoding="utf-8")
    (tmp_path / "bundle").symlink_to(small_bundle)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(locations, "results", lambda: workplace / "docs")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_of_page_runs(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(f"docs_{page.stem.replace('-', '_')}")
    sys.modules[module.__name__] = (
        module  # so that its classes are found by name, also after it: options stay registered
    )
    monkeypatch.setattr(sys, "argv", [str(page)])  # which a program of Hydra reads
    for block in BLOCKS:
        if block.page == page and not block.reason:
            exec(compile(block.body, f"{name(page)}, block {block.number}", "exec"), module.__dict__)


def test_python_that_is_not_run_compiles() -> None:
    for block in BLOCKS:
        if block.reason:
            compile(textwrap.dedent(block.body), name(block.page), "exec")


def modules_with_examples() -> list[str]:
    modules = [module.name for module in pkgutil.walk_packages(ragbench.__path__, "ragbench.")]
    files = {module: ROOT.joinpath(*module.split(".")) for module in modules}
    sources = {
        module: path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for module, path in files.items()
    }
    return ["ragbench", *(module for module, path in sources.items() if ">>> " in path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("module", modules_with_examples())
def test_docstring_examples_run(module: str, folder: Path) -> None:
    outcome = doctest.testmod(importlib.import_module(module))
    assert outcome.failed == 0


PUBLIC = {public: getattr(ragbench, public) for public in sorted(ragbench.__all__)}


@pytest.mark.parametrize("public", [public for public, value in PUBLIC.items() if inspect.isfunction(value)])
def test_docstring_has_every_parameter(public: str) -> None:
    text = inspect.getdoc(PUBLIC[public]) or ""
    arguments = text.partition("Args:\n")[2].partition("Returns:\n")[0]
    for parameter in inspect.signature(PUBLIC[public]).parameters:
        assert f"{parameter}: " in arguments, parameter


@pytest.mark.parametrize("public", [public for public, value in PUBLIC.items() if inspect.isclass(value)])
def test_docstring_has_every_field(public: str) -> None:
    fields = [field for field in PUBLIC[public].__dataclass_fields__ if not field.startswith("_")]
    text = inspect.getdoc(PUBLIC[public]) or ""
    assert [field for field in fields if f"    {field}: " not in text] == []


PLAN = """
from ragbench.config import composition
from ragbench.experiment import ablate

ablation = ablate.plan(composition.compose(["archive=on", "archive.factor=0.3"]), composition.compose)
print(ablation.design.factors, [repr(arm.pipeline) for arm in ablation.settings])
"""


@pytest.mark.slow
def test_contributing_stage_passes_its_test_and_is_ablated(tmp_path: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page[page.index("## Add a stage") : page.index("## Rules")]
    stage, test = re.findall(r"^ *```python\n(.*?)^ *```$", section, re.M | re.S)
    for copied in ("ragbench", "conf", "tests/fixtures"):
        shutil.copytree(ROOT / copied, tmp_path / copied, ignore=shutil.ignore_patterns("__pycache__"))
    for copied in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / copied, tmp_path / copied)
    (tmp_path / "tests" / "stages").mkdir()
    written = {"ragbench/search/stages/archive.py": stage, "tests/stages/test_archive.py": test}
    for path, text in written.items():
        (tmp_path / path).write_text(textwrap.dedent(text), encoding="utf-8")

    def python(*words: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    python("-m", "pytest", "-q", "-p", "pytest_benchmark.plugin", "tests/stages/test_archive.py")
    output = python("-c", PLAN)
    assert output.startswith("('archive',) ")
    assert output.count("demote archived factor=0.3") == 1
