"""A small part of the campaign; `make faults` runs the whole of it."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from research.faults.bad_inputs import cases, harm
from research.faults.campaign import SEED, exported, words_in
from research.faults.concurrent_refresh import Company
from research.faults.determinism import differences, measure
from research.faults.doors import Doors

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle of a run."""
    folder = tmp_path_factory.mktemp("faults")
    exported(folder)
    return folder


@pytest.mark.slow
def test_campaign_does_no_harm(tmp_path: Path) -> None:
    counts = ("kills=1", "errors=1", "bundles=2", "databases=2", "flips=40", "inputs=6")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "research.faults.campaign", "--seed", str(SEED), *counts]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "| harms | 0 |" in done.stdout
    assert int(re.search(r"flips that are noticed \| (\d+)", done.stdout)[1]) >= 36
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kills"), [("init", 12), ("fit ranker", 2)])
def test_command_can_be_repeated_after_a_kill_at_any_change(tmp_path: Path, name: str, kills: int) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "research.faults.campaign", "--command", name, f"kills={kills}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert f"| kills: {name} | {kills} |" in done.stdout
    assert "too late" not in done.stdout


@pytest.mark.slow
def test_campaign_of_bad_inputs_is_refused_in_one_sentence(tmp_path: Path) -> None:
    known = cases()
    assert len(known) >= 600
    assert len({case.name for case in known}) == len(known)
    # Quick ones: no documents are read, nothing is measured.
    quick = [case for case in known if case.name.startswith(("keys", "values", "slips", "data"))]
    chosen = random.Random(SEED).sample(quick, 40)
    assert [(case.name, message) for n, case in enumerate(chosen) if (message := harm(case, tmp_path / str(n)))] == []


@pytest.mark.slow
def test_campaign_of_bad_contents_is_refused_everywhere(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(workplace / "state"))
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    doors = Doors(workplace / "doors", workplace / "bundle", words_in(workplace))
    try:
        doors.try_all(102)
    finally:
        doors.close()
    assert doors.harms == []
    assert doors.refused.total() > 30


@pytest.mark.slow
def test_refresh_leaves_an_answer_when_killed(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(workplace / "state"))
    company = Company(workplace / "company", workplace / "bundle")
    company.kill(1)
    assert company.harms == []


@pytest.mark.slow
def test_run_is_equal_for_seeds_threads_and_order_of_topics(tmp_path: Path) -> None:
    measured = {case: measure(case, tmp_path / case[0]) for case in (("0", "1", "forward"), ("77", "2", "backward"))}
    assert list(differences(measured)) == []
    assert len(next(iter(measured.values()))) == 8
