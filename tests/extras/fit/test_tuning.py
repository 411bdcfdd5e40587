"""A search as a call: frames, sentences, and an arm to export."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import ragbench
from ragbench.base.types import ConfigError, ResultsError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.extras.fit.tuning.report import Tuning
from tests.naming import naming

HANDBOOK = Path(__file__).parents[2] / "data" / "phases"
ROWS = """text,relevant,split
how do programs prove their identity,authentication.md,train
largest file I may send,configuration.md,train
which compiler do I need,clients.md,train
how long does the cdn copy live,caching.md,train
counters,metrics.md,test
the guide on emptying a queue,queues.md,test
server says come back later,uploads.md,test
switch traffic between two running versions,deployment.md,test
"""


@pytest.fixture(scope="module")
def tuning(tmp_path_factory: pytest.TempPathFactory) -> Tuning:
    """A threshold that drops nearly everything, and a search that may lower it."""
    folder = tmp_path_factory.mktemp("tuning")
    (folder / "questions.csv").write_text(ROWS, encoding="utf-8")
    return ragbench.tune(
        *("data=vault", f"data.corpus={HANDBOOK}", f"data.queries={folder / 'questions.csv'}"),
        *("p10=on", "p10.threshold=0.5", "tune=[p10]", "tune.starts=[]", "tune.trials=8", "tune.folds=2"),
        *(f"paths.results={folder}", "latency.enabled=false", "tracking.enabled=false"),
    )


def test_tuning_reports_winner_folds_and_test(tuning: Tuning) -> None:
    assert list(tuning.parameters["parameter"]) == ["p10.threshold"]
    assert float(tuning.parameters["winner"][0]) < 0.5
    assert list(tuning.folds["fold"]) == [1, 2]
    assert set(tuning.trials["search"]) == {"all", "fold 1", "fold 2"}
    assert any("optimism" in sentence for sentence in tuning.sentences)
    assert tuning.results.arms == ["preset", "tuned"]
    assert not tuning.confirmation.is_adopted  # four topics show nothing
    assert tuning.summary()["test"]["document"]["n"] == 4
    assert (tuning.folder / "report.json").is_file() and (tuning.results.folder / "report.html").is_file()


def test_tuning_winner_is_exported_if_its_gain_is_established_or_by_force(tuning: Tuning, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the verdict on this configuration is .*anyway, add .*--force"):
        tuning.results.export(tmp_path / "bundle", arm="tuned")  # four topics show nothing
    with pytest.raises(ConfigError, check=naming("format", "ragbench", "word")):
        tuning.results.export(tmp_path / "bundle", arm="tuned", format="word")
    written = tuning.results.export(tmp_path / "bundle", arm="tuned", force=True)
    assert written.out == tmp_path / "bundle" and written.evidence.caution is not None
    with ragbench.load(written.out) as bundle:
        assert bundle.search("counters", top_n=1)[0].docno == "metrics"
    file = tuning.results.export(arm="preset", format="ragdocs", force=True)
    assert file.out == tuning.results.folder / "exports" / "preset.toml" and file.out.is_file()
    assert file.missing


def test_tuning_without_anything_better_there_is_no_tuned_arm(tuning: Tuning) -> None:
    unchanged = dataclasses.replace(tuning, confirmation=None)
    with pytest.raises(ResultsError, match="nothing better than the configured values"):
        _ = unchanged.results


def test_tuning_benchmark_may_be_given(benchmark_small: Benchmark, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=naming("tune.folds=5")):  # two topics to train with
        ragbench.tune(
            "tune=[fuse]",
            "tune.starts=[]",
            f"paths.results={tmp_path}",
            "tracking.enabled=false",
            benchmark=benchmark_small,
        )
