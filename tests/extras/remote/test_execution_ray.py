"""A cluster of our own is started and stopped cleanly; one that is gone, locked or not installed is one sentence."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ragbench.base.errors import ConfigError
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.config.execution_backends import spec_of
from ragbench.extras.remote import execution_ray

NEEDS_RAY = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'ragbench[ray]'"
)
VAULT = Path(__file__).parents[2] / "data" / "vault"


def clean(tmp_path: Path, **more: str) -> dict[str, str]:
    """An environment without settings of Ray, and with a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return {**kept, "HOME": str(tmp_path / "home"), "RAGBENCH_TEST": str(tmp_path), **more}


def command(tmp_path: Path, workplace: Path, *more: str) -> list[str]:
    queries = tmp_path / "queries.csv"
    queries.write_text("qid,text\nq1,how do lamps know when the sun sets\nq2,LNT-301\n")
    words = [sys.executable, "-m", "ragbench", "run", "-m", "execution=ray", "execution.workers=1"]
    words += ["data=vault", f"data.corpus={VAULT}", f"data.queries={queries}", "split=all", "latency.enabled=false"]
    words += ["allow_unjudged=true"]
    words += ["tracking.enabled=false", f"paths.results={tmp_path / 'results'}", f"paths.cache={workplace / 'cache'}"]
    return [*words, "--json", *more]


def left_over(tmp_path: Path) -> list[str]:
    """Processes that were started with this test's environment and still run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("RAGBENCH_TEST") == str(tmp_path) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.name())
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
    return found


@pytest.mark.slow
@NEEDS_RAY
def test_a_cluster_of_our_own_comes_and_goes(tmp_path: Path, workplace: Path) -> None:
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        command(tmp_path, workplace), env=clean(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["summary"]) == 1  # and nothing of Ray on standard output
    deadline = time.monotonic() + 20
    while left_over(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left_over(tmp_path) == []
    assert not (tmp_path / "home" / ".ray").exists()


@pytest.mark.slow
@NEEDS_RAY
def test_a_cluster_that_is_gone_is_one_sentence(tmp_path: Path, workplace: Path) -> None:
    (tmp_path / "home").mkdir()
    stale = clean(tmp_path, RAY_ADDRESS="127.0.0.1:9")
    done = subprocess.run(command(tmp_path, workplace), env=stale, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert said.startswith("ragbench: no Ray cluster answers at 127.0.0.1:9 (")
    assert "unset RAY_ADDRESS" in said


@pytest.mark.slow
@NEEDS_RAY
def test_a_wrong_token_is_one_sentence(cluster: str, tmp_path: Path, workplace: Path) -> None:
    (tmp_path / "home").mkdir()
    locked = clean(tmp_path, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0" * 64)
    done = subprocess.run(
        command(tmp_path, workplace, cluster), env=locked, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert "cannot be joined (" in said
    assert "RAY_AUTH_TOKEN_PATH" in said


def test_an_address_must_have_a_port() -> None:
    with pytest.raises(ConfigError, match=r"execution\.address must be host:port, ray://host:port or auto, got here"):
        execution_ray._check_reachable("here")


def test_a_missing_extra_names_the_install_command(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    said = "execution=ray needs Ray, which is not installed: run pip install 'ragbench[ray]'"
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        spec_of(composition.compose(["execution=ray"]))
    assert cli.main(["index", "execution=ray"]) == 2
    assert capsys.readouterr().err == f"ragbench: {said}\n"


@NEEDS_RAY
@pytest.mark.slow
def test_java_keeps_the_signals_it_lives_by(cluster: str) -> None:
    """A null check in a running Java machine is a segmentation fault that its handler turns into an exception."""

    def handler() -> bytes:
        action = ctypes.create_string_buffer(512)
        ctypes.CDLL(None).sigaction(int(signal.SIGSEGV), None, action)
        return action.raw[: ctypes.sizeof(ctypes.c_void_p)]

    before = handler()
    with contextlib.ExitStack() as stack:
        execution_ray._connect(cluster.removeprefix("execution.address="), 1, stack)
        assert handler() == before
    assert handler() == before
