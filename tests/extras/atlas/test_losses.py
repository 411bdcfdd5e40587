"""`ragbench diagnose`, and its sentences on losses worked by hand."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from ragbench.benchmark.benchmark import Benchmark
from ragbench.commands import cli
from ragbench.extras.atlas.commands.diagnose import sentences
from ragbench.workbench.experiment import Experiment


def fates(*sections: str) -> pd.DataFrame:
    """The fates of sections or documents of one arm: found, dropped by p10 twice, never retrieved."""
    happened = [("found", "p10"), ("dropped", "p10"), ("dropped", "p10"), ("never retrieved", "retrieval")]
    rows = [("arm", "q", section, *what) for section, what in zip(sections, happened, strict=True)]
    return pd.DataFrame(rows, columns=["arm", "qid", "section", "outcome", "stage"])


@pytest.mark.parametrize(("ending", "unit"), [("#1", "sections"), ("", "documents")])
def test_diagnose_counts_losses_by_outcome_and_stage(ending: str, unit: str) -> None:
    assert sentences(fates(*(name + ending for name in "abcd"))) == [
        f"arm: dropped (p10): 2 of 4 relevant {unit}",
        f"arm: never retrieved (retrieval): 1 of 4 relevant {unit}",
    ]


def test_diagnose_shows_pollution(benchmark_small: Benchmark, workplace, capsys) -> None:
    around = [f"paths.results={workplace}", "tracking.enabled=false", "latency.enabled=false", "split=all"]
    arms = {"plain": ["exp=baseline", *around], "few": ["cut.top_n=1", *around]}
    folder = str(Experiment.arms(arms, benchmark_small).run().folder)
    capsys.readouterr()
    assert cli.main(["diagnose", folder]) == 0
    output = capsys.readouterr().out
    assert "Contexts of 2,000 tokens" in output and "most pollution" in output
    assert cli.main(["diagnose", folder, "--arms", "few", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert [row["arm"] for row in values["contexts"]] == ["few"]
    assert {row["by"] for row in values["polluters"]} == {"folder", "type"}


def test_diagnose_finds_a_query_by_its_text(benchmark_small: Benchmark, workplace, capsys) -> None:
    around = [f"paths.results={workplace}", "tracking.enabled=false", "latency.enabled=false", "split=all"]
    folder = str(Experiment.arms({"plain": ["exp=baseline", *around]}, benchmark_small).run().folder)
    topic = benchmark_small.with_answer(benchmark_small.topics)[0]
    capsys.readouterr()
    found = []
    for query in (topic.qid, f" {topic.text.upper()} "):
        assert cli.main(["diagnose", folder, "--query", query, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1] and {row["qid"] for row in found[0]} == {topic.qid}
    assert cli.main(["diagnose", folder, "--query", "no such text"]) == 2
    assert "'no such text' is neither the id nor the text of a query" in capsys.readouterr().err
