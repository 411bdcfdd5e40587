"""A person with notes and no questions gets a verdict between two arms and a report with two commands.

`research/bench/test_two_commands.py` does it with 500 notes, by the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragbench.commands import cli
from ragbench.results import measurements, store

# MLflow and the libraries below it warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.slow
def test_derive_and_run_lead_to_verdict(
    tmp_path: Path,
    write_vault: Callable[[Path, int], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_vault(tmp_path / "notes", 60)
    monkeypatch.chdir(tmp_path)

    assert cli.main(["topics", "derive", "data=vault", "data.corpus=notes", "paths.results=results"]) == 0
    made = len(Path("topics.jsonl").read_text(encoding="utf-8").splitlines())
    assert made >= 100 and f"{made} synthetic queries from 60 documents" in capsys.readouterr().out

    quick = ["latency.rounds=1", "latency.cold_start=false", "paths.results=results", "tracking.enabled=false"]
    arms = ["-m", "+exp=lexical_only,baseline", "--wide"]
    assert cli.main(["run", *arms, "data=vault", "data.corpus=notes", "topics=derived", *quick]) == 0
    output = capsys.readouterr().out
    titles = [line for line in output.splitlines() if line.strip().startswith(("Documents", "Effect on", "nDCG@10 by"))]
    assert len(titles) >= 3 and all("synthetic queries" in title for title in titles)
    verdicts = ("baseline: adopt. ", "baseline: reject. ", "baseline: inconclusive. ", "baseline: equivalent. ")
    assert len([line for line in output.splitlines() if line.startswith(verdicts)]) == 1

    measured = measurements.load(store.latest(Path("results")))
    assert measured.topics_origin == "synthetic queries"
    page = (measured.folder / "report.html").read_text(encoding="utf-8")
    assert "queries of the split &#39;train&#39; (synthetic queries)" in page
    assert "Means over all measured queries; synthetic queries" in page


def test_derive_command_keeps_existing_file(tmp_path: Path, write_vault, capsys: pytest.CaptureFixture[str]) -> None:
    write_vault(tmp_path / "notes", 40)
    out = tmp_path / "topics.jsonl"
    command = ["topics", "derive", "data=vault", f"data.corpus={tmp_path / 'notes'}", "--out", str(out)]
    assert cli.main(command) == 0
    assert cli.main(command) == 2
    assert f"{out} exists already: rename it, or add --replace" in capsys.readouterr().err
    assert cli.main([*command, "--replace", "topics.limit=5"]) == 0
    assert len(out.read_text(encoding="utf-8").splitlines()) == 5


@pytest.mark.slow
def test_topics_command_counts_by_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topics", "data=builtin_v1", "--json"]) == 0
    output = capsys.readouterr().out
    assert '"type": "multi_document"' in output and '"short by": "15 in test, 15 in train"' in output
    assert cli.main(["topics", "dervie"]) == 2
    assert "ragbench topics has no sub-command 'dervie'; did you mean derive?" in capsys.readouterr().err
