"""The script of the GitHub action, run on a repository of notes: the pull request that empties notes fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
WORDS = [f"w{letter}rd" for letter in "abcdefghijklmn"]


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "repository" / "docs"
    (folder / "notes").mkdir(parents=True)
    for word in WORDS:
        (folder / "notes" / f"{word}.md").write_text(f"# Note\n\nAll about {word} and its care.\n", encoding="utf-8")
    rows = [f"care of {word},{word}.md,test" for word in WORDS]
    (folder / "queries.csv").write_text("\n".join(["text,relevant,split", *rows]) + "\n", encoding="utf-8")
    project = {"data": "vault", "data.corpus": "notes", "data.queries": "queries.csv", "split": "all"}
    (folder / "ragbench.yaml").write_text(yaml.safe_dump(project), encoding="utf-8")
    git(folder.parent, "init", "-q")
    git(folder.parent, "add", "-A")
    git(folder.parent, "commit", "-qm", "notes")
    return folder


@pytest.mark.slow
def test_action_fails_a_change_that_empties_notes(notes: Path, tmp_path: Path) -> None:
    base = git(notes, "rev-parse", "HEAD")
    for word in WORDS[:12]:
        (notes / "notes" / f"{word}.md").write_text("# Note\n\nTo be written.\n", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ragbench").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ragbench "$@"\n')
    (tmp_path / "bin" / "ragbench").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [str(ROOT / ".ci" / "gate"), str(notes), base, "exp=lexical_only statistics.draws=2000"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "FAILS" in done.stdout
    assert git(notes, "worktree", "list").count("\n") == 0


def test_action_gives_the_script_what_it_takes() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert set(action["inputs"]) == {"folder", "base", "arm", "options"}
    last = action["runs"]["steps"][-1]
    assert ".ci/gate" in last["run"]
    assert {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]} == set(last["env"].values())
    used = [step["uses"] for step in action["runs"]["steps"] if "uses" in step]
    assert used and all(
        re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", used_action) for used_action in used
    )  # a tag can be moved
