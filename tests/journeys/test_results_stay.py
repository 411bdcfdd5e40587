"""Results stay where a command is typed, or beside the project file, however ragbench is installed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.base.errors import ResultsError
from ragbench.config import composition
from ragbench.results import store
from ragbench.workbench import Experiment, experiment
from tests.test_docs import BLOCK, ROOT, Block, overrides, parsed


def calls() -> list[list[str]]:
    """Every call of ragbench in README and in the first hour, in order."""
    found = []
    for page in (ROOT / "README.md", ROOT / "docs" / "quickstart.md"):
        for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
            found += [words for words, _ in Block(page, match["kind"], match["body"], False).lines if words]
        lines = page.read_text(encoding="utf-8").splitlines()
        found += [shlex.split(line)[2:] for line in lines if line.startswith("$ ragbench ")]
    assert {words[0] for words in found} >= {"init", "run", "export", "verify", "serve"}
    return found


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return tmp_path / "empty"


def test_every_command_of_the_first_pages_keeps_its_results_in_an_empty_folder(empty: Path) -> None:
    for words in calls():
        given = overrides(words)
        if given is None:
            continue
        several = vars(parsed(words)).get("multirun")
        for settings in composition.sweep(given) if several else [composition.compose(given)]:
            assert (settings.results, locations.ledger().name) == (empty / "results", "ragbench"), words
            assert settings.cache_folder.parent == settings.index_folder.parent == empty / "results", words


def test_results_go_beside_the_project_file_from_everywhere_below_it(empty: Path, monkeypatch) -> None:
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


def test_without_a_project_file_a_run_says_what_it_measures(empty: Path, benchmark_small, caplog) -> None:
    first, said = experiment.first_lines(composition.compose([]))
    assert first == "writing results to results in this folder"
    assert said == (
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


def test_results_in_the_checkout_change_nothing_elsewhere(empty: Path, monkeypatch) -> None:
    checkout = empty.parent / "checkout"
    (checkout / "results" / "runs").mkdir(parents=True)
    monkeypatch.setattr(locations, "checkout", lambda: checkout)
    monkeypatch.setattr(locations, "configuration", lambda: ROOT / "conf")
    assert len(experiment.first_lines(composition.compose([]))) == 2
    with pytest.raises(ResultsError, match=r"no results below .*: run an experiment first$"):
        store.latest(empty / "results")
