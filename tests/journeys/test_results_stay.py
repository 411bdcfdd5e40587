"""Results stay where a command is typed, or beside the project file, however ragbench is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.base.types import ResultsError
from ragbench.config import composition
from ragbench.results import store
from ragbench.workbench import Experiment, experiment
from tests.docs.pages import ROOT, blocks, overrides, parsed


def calls() -> list[list[str]]:
    """The calls of ragbench on README and on the quickstart page, in order."""
    pages = (ROOT / "README.md", ROOT / "docs" / "quickstart.md")
    words = [words for block in blocks() if block.page in pages for words in block.calls if words]
    assert {call[0] for call in words} >= {"init", "run", "export", "verify", "serve"}
    return words


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return tmp_path / "empty"


def test_commands_of_first_pages_write_results_to_the_working_directory(empty: Path) -> None:
    for words in calls():
        given = overrides(words)
        if given is None:
            continue
        several = vars(parsed(words)).get("multirun")
        for settings in composition.sweep(given) if several else [composition.compose(given)]:
            assert (settings.results, locations.ledger().name) == (empty / "results", "ragbench"), words
            assert settings.cache_folder.parent == settings.index_folder.parent == empty / "results", words


def test_results_go_beside_the_project_file(empty: Path, monkeypatch) -> None:
    (empty / "ragbench.yaml").write_text("data: vault\ndata.corpus: notes\n", encoding="utf-8")
    (empty / "notes" / "deep").mkdir(parents=True)
    monkeypatch.chdir(empty / "notes" / "deep")
    settings = composition.compose([])
    assert settings.results == empty / "results"
    assert experiment.first_lines(settings) == [f"writing results to results next to {empty / 'ragbench.yaml'}"]
    monkeypatch.chdir(empty)
    assert experiment.first_lines(composition.compose([])) == ["writing results to results next to ragbench.yaml"]
    assert experiment.first_lines(composition.compose(["paths.results=/else/where"])) == [
        "writing results to /else/where"
    ]


def test_run_without_a_project_file_logs_its_benchmark(empty: Path, benchmark_small, caplog) -> None:
    first, second = experiment.first_lines(composition.compose([]))
    assert first == "writing results to results in this folder"
    assert second == (
        "no ragbench.yaml here or above: measuring the built-in benchmark, documentation of a fictional product; "
        "to measure your own notes, run ragbench init FOLDER"
    )
    (empty / "docs").mkdir()
    assert experiment.first_lines(composition.compose([]))[1].endswith("run ragbench init docs")
    assert experiment.first_lines(composition.compose(["data=builtin_v1"])) == [first]
    quick = ["exp=lexical_only", "latency.enabled=false", "tracking.enabled=false"]
    Experiment.sweep(*quick, benchmark=benchmark_small).run(lambda *_: None)
    assert caplog.messages[0] == first and not any("built-in" in line for line in caplog.messages)
    assert (empty / "results" / "runs").is_dir()


def test_results_in_the_checkout_are_not_read_elsewhere(empty: Path, monkeypatch) -> None:
    checkout = empty.parent / "checkout"
    (checkout / "results" / "runs").mkdir(parents=True)
    monkeypatch.setattr(locations, "checkout", lambda: checkout)
    monkeypatch.setattr(locations, "configuration", lambda: ROOT / "conf")
    assert len(experiment.first_lines(composition.compose([]))) == 2
    with pytest.raises(ResultsError, match=r"no results below .*: run an experiment first$"):
        store.latest(empty / "results")
