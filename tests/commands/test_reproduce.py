"""`ragbench reproduce`: published figures come from pyserini, and a missed one fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.commands import reproduce
from ragbench.commands.cli import main

TEA = Path(__file__).parents[1] / "data" / "tea" / "beir"


def test_figures_are_those_that_pyserini_ships() -> None:
    assert reproduce._published("scifact") == 0.6789
    assert reproduce._published("nfcorpus") == 0.3218


def test_a_figure_that_is_missed_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["reproduce", "scifact", "--folder", str(TEA), f"paths.results={tmp_path}", "--quiet"]
    assert main([*words, "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["figures"]
    assert (row["arm"], row["published"], row["allowed"], row["within"]) == ("bm25", 0.6789, 0.002, False)
    monkeypatch.setattr(reproduce, "_published", lambda name: round(row["ndcg_at_10"], 4))
    assert main(words) == 0
    assert ": met" in capsys.readouterr().out


def test_another_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "scifax"]) == 2
    assert "did you mean scifact?" in capsys.readouterr().err
