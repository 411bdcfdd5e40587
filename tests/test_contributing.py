"""The example of CONTRIBUTING.md, exactly as it is printed, in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.M | re.S)
PYTEST = ("-m", "pytest", "-q", "-p", "pytest_benchmark.plugin")  # without other plug-ins, which take seconds
PLAN = """
from ragbench.config import composition
from ragbench.experiment import ablate

ablation = ablate.plan(composition.compose(["archive=on", "archive.factor=0.3"]), composition.compose)
print(ablation.design.factors, [repr(arm.pipeline) for arm in ablation.settings])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    section = PAGE[PAGE.index("## Add a stage") : PAGE.index("## Rules")]
    stage, test = (textwrap.dedent(body) for body in BLOCK.findall(section))
    for folder in ("ragbench", "conf"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests" / "stages").mkdir(parents=True)
    shutil.copytree(ROOT / "tests" / "fixtures", tmp_path / "tests" / "fixtures")
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name, text in {"ragbench/search/stages/archive.py": stage, "tests/stages/test_archive.py": test}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def python(project: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_printed_stage_passes_its_printed_test_and_is_varied_by_an_ablation(project: Path) -> None:
    python(project, *PYTEST, "tests/stages/test_archive.py")
    said = python(project, "-c", PLAN)
    assert said.startswith("('archive',) ")
    assert said.count("demote archived x0.3") == 1


def test_no_other_document_uses_its_name() -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if "DemoteArchived" in page.read_text("utf-8")]
    assert [page.name for page in pages] in ([], ["python-api.md"])  # the docstring of `CustomStage`
