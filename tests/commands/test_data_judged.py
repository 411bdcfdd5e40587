"""`ragbench data judged`: what of a run is judged, and what the judgments may lack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.commands.cli import main

QUESTIONS = """text,relevant
largest file I may send,configuration.md
which compiler do I need,clients.md
counters,metrics.md;configuration.md
the guide on emptying a queue,queues.md
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A run of two arms, and the words that name its results."""
    folder = tmp_path_factory.mktemp("judged")
    (folder / "questions.csv").write_text(QUESTIONS, encoding="utf-8")
    handbook = Path(__file__).parents[1] / "data" / "phases"
    data = ["data=vault", f"data.corpus={handbook}", f"data.queries={folder / 'questions.csv'}"]
    words = [*data, f"paths.results={folder}", "tracking.enabled=false"]
    assert (
        main(["run", "-m", "+exp=lexical_only,lexical_v3", "split=all", "latency.enabled=false", *words, "--quiet"])
        == 0
    )
    return words


def test_every_arm_with_what_is_unjudged(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "judged", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["arm"] for row in found["judged"]] == ["lexical_only", "lexical_v3"]
    assert all(0 <= row["documents"] <= 1 and row["unjudged pairs"] > 0 for row in found["judged"])
    assert found["completeness"]["known"] == 5
    assert [each["method"] for each in found["completeness"]["estimates"]] == ["Chao", "Lincoln-Petersen"]


def test_it_is_said_in_words(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "judged", *words]) == 0
    said = capsys.readouterr().out
    assert (
        "5 sections or documents are judged relevant" in said
        and "Lincoln-Petersen (lexical_only and lexical_v3)" in said
    )
    assert main(["data", "judged", *words, "--systems", "lexical_only"]) == 0
    assert "One arm is not enough for an estimate." in capsys.readouterr().out


def test_an_arm_that_is_not_there_is_one_sentence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "judged", *words, "--systems", "lexical_only,lexical_v2"]) == 2
    assert "is not an arm of" in capsys.readouterr().err
