"""What a result depends on besides its inputs is recorded."""

import importlib.metadata
import platform
import subprocess

import pytest

from ragbench.base import locations
from ragbench.results import environment


def test_environment_versions_are_those_installed() -> None:
    result = environment.describe()
    assert result["ragbench"] == importlib.metadata.version("ragbench")
    assert result["python"] == platform.python_version()
    assert result["packages"]["onnxruntime"] == importlib.metadata.version("onnxruntime")
    assert result["processor"] and result["cpus"] >= 1 and result["memory_bytes"] > 2**28


def test_environment_commit_is_that_of_the_checkout(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        call = ["git", "-C", str(tmp_path), *identity, *words]
        return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(locations, "checkout", lambda: tmp_path)
    git("init", "-q")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-q", "-m", "first")
    assert environment.describe()["git"] == {"commit": git("rev-parse", "HEAD"), "dirty": False}
    (tmp_path / "a").write_text("2")
    assert environment.describe()["git"]["dirty"] is True


def test_environment_outside_a_checkout_there_is_no_commit(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations, "checkout", lambda: None)
    assert environment.describe()["git"] is None
    monkeypatch.setattr(locations, "checkout", lambda: tmp_path)
    assert environment.describe()["git"] is None
