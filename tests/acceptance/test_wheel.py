"""A wheel that is built and installed somewhere else works there, with its own configuration and benchmark.

Needs a package index for the build.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.slow


def run(*command: str | Path, **options) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder: Path, clock: str) -> Path:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1580601600", "TZ": clock}
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, env=environment)
    (wheel,) = folder.glob("ragbench-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"), "UTC")


def test_wheel_works_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "clean")
    python = tmp_path / "clean" / "bin" / "python"
    # The libraries are those of this environment, ragbench is the wheel's.
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    elsewhere = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = tmp_path / "clean" / "bin" / "ragbench"
    (tmp_path / "work").mkdir()

    def called(*words: str) -> str:
        return run(command, *words, cwd=tmp_path / "work", env=elsewhere)

    where = run(python, "-c", "import ragbench; print(ragbench.__file__)", cwd=tmp_path / "work", env=elsewhere)
    assert Path(where.strip()).is_relative_to(tmp_path / "clean")
    assert called("--version").startswith("ragbench ")
    assert "recommended" in called("list", "experiments")
    assert "retrieve" in called("list", "config", "exp=recommended").splitlines()[0].lower()
    assert "builtin: 541 queries" in called("topics")


def test_wheel_is_the_same_bytes_when_it_is_built_again(wheel: Path, tmp_path: Path) -> None:
    assert build(tmp_path, "Asia/Tokyo").read_bytes() == wheel.read_bytes()
