"""`ragbench diagnose`, and its sentences on losses worked by hand."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from ragbench.benchmark.benchmark import Benchmark
from ragbench.commands import cli
from ragbench.extras.atlas.commands.diagnose import lost_topics, sentences
from ragbench.workbench.experiment import Experiment


def fates(*sections: str) -> pd.DataFrame:
    """The fates of sections or documents of one arm: found, dropped by p10 twice, never retrieved."""
    happened = [("found", "p10"), ("dropped", "p10"), ("dropped", "p10"), ("never retrieved", "retrieval")]
    rows = [("arm", "q", section, *what) for section, what in zip(sections, happened, strict=True)]
    return pd.DataFrame(rows, columns=["arm", "qid", "section", "outcome", "stage"])


@pytest.mark.parametrize(("ending", "unit"), [("#1", "sections"), ("", "documents")])
def test_losses_are_said(ending: str, unit: str) -> None:
    assert sentences(fates(*(name + ending for name in "abcd"))) == [
        f"arm: dropped (p10): 2 of 4 relevant {unit}",
        f"arm: never retrieved (retrieval): 1 of 4 relevant {unit}",
    ]


def test_lost_topics_are_counted_by_outcome_and_stage() -> None:
    rows = [("lost in fusion", "fuse"), ("found", "fuse"), ("dropped", "p10"), ("dropped", "p10")]
    frame = pd.DataFrame([("arm", *row) for row in rows], columns=["arm", "outcome", "stage"])
    assert lost_topics(frame)[["outcome", "stage", "topics", "share"]].values.tolist() == [
        ["dropped", "p10", 2, 0.5],
        ["lost in fusion", "fuse", 1, 0.25],
    ]


def test_diagnose_shows_what_pollutes(benchmark_small: Benchmark, workplace, capsys) -> None:
    around = [f"paths.results={workplace}", "tracking.enabled=false", "latency.enabled=false", "split=all"]
    arms = {"plain": ["exp=baseline", *around], "few": ["cut.top_n=1", *around]}
    folder = str(Experiment.arms(arms, benchmark_small).run().folder)
    capsys.readouterr()
    assert cli.main(["diagnose", folder]) == 0
    shown = capsys.readouterr().out
    assert "Contexts of 2,000 tokens" in shown and "most pollution" in shown
    assert cli.main(["diagnose", folder, "--arms", "few", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["arm"] for row in found["contexts"]] == ["few"]
    assert {row["by"] for row in found["polluters"]} == {"folder", "type"}
