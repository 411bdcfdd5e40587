"""A new user, from a folder of notes to a served answer, with the commands that docs/quickstart.md shows."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from ragbench.commands import cli

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "quickstart.md"
QUICK = ("latency.queries=2", "latency.rounds=1", "latency.warmup=0", "latency.cold_start=false")
QUICK += ("tracking.enabled=false", "statistics.draws=1000")

# MLflow and the libraries below it warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")


def typed() -> list[str]:
    """The commands of the page, in order."""
    return re.findall(r"^\$ (ragbench .*)$", PAGE.read_text(encoding="utf-8"), flags=re.M)


def test_at_most_eight_commands_of_eighty_characters() -> None:
    assert 0 < len(typed()) <= 8
    assert all(len(line) <= 80 for line in typed())


@pytest.mark.slow
def test_they_lead_from_notes_to_a_served_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "tests" / "data" / "phases", tmp_path / "notes")
    monkeypatch.chdir(tmp_path)
    lines, results = typed(), sorted((ROOT / "results").rglob("*"))
    for place, line in enumerate(lines[:-1]):
        words = shlex.split(line)[1:]
        quick = {"run": QUICK, "verify": ("--no-latency",)}.get(words[0], ())
        assert cli.main([*words, *quick]) == 0, line
        said = capsys.readouterr().out
        follows = re.findall(r"^next: (ragbench .*)$", said, flags=re.M)
        if follows:  # the command to type next is on the page, and it comes next
            assert shlex.split(follows[-1])[1] == shlex.split(lines[place + 1])[1], (line, follows)
    serve = shlex.split(lines[-1])[1:]
    assert serve[0] == "serve"
    with subprocess.Popen(
        [sys.executable, "-m", "ragbench", *serve, "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = re.search(r"http://\S+?:\d+", process.stdout.readline())
            assert address
            answer = httpx.post(
                f"{address[0]}/search", json={"query": "how do programs prove who they are"}, timeout=60
            )
            assert answer.json()["hits"][0]["docno"] == "authentication"
        finally:
            process.terminate()
    # What is written lies where the commands are typed.
    assert {path.name for path in tmp_path.iterdir()} >= {"notes", "results", "ragbench.yaml", "bundle"}
    assert sorted((ROOT / "results").rglob("*")) == results
