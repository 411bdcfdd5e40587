"""`ragbench atlas`, and what a run, advice and an export say from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.commands.cli import main
from ragbench.extras.atlas import ingest
from ragbench.extras.atlas.tables import Atlas
from ragbench.report import evidence, screen
from ragbench.results import measurements, store
from tests.made_atlas import QUESTIONS, made


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of `plain` and `p8` on four questions."""
    folder = tmp_path_factory.mktemp("atlas")
    (folder / "questions.csv").write_text(QUESTIONS, encoding="utf-8")
    handbook = Path(__file__).parents[2] / "data" / "phases"
    data = ["data=vault", f"data.corpus={handbook}", f"data.queries={folder}/questions.csv"]
    arms = ["--arm", "plain=exp=plain_hybrid", "--arm", "dedup=exp=plain_hybrid p8=on"]
    words = [f"paths.results={folder}", "tracking.enabled=false", "latency.enabled=false", "--quiet"]
    assert main(["run", *arms, *data, *words]) == 0
    return folder


@pytest.mark.slow
def test_a_run_with_few_topics_is_told_what_to_expect(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = measurements.load(store.latest(results))
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 12))
    (sentence,) = screen.expected_sentences(run)
    known = "prediction from 12 other collections (none of them with user queries) and your 4 queries: "
    assert sentence.startswith(known + "dedup beats plain with probability")
    assert sentence.endswith(
        " nDCG@10 on all kinds of queries); to export it anyway: ragbench export --accept-predicted"
    )
    monkeypatch.setattr(Atlas, "load", lambda: made([-0.05] * 12))
    assert "export it anyway" not in screen.expected_sentences(run)[0]
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 9))
    assert screen.expected_sentences(run) == []


def test_nothing_is_expected_of_an_arm_that_is_decided(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = measurements.load(store.latest(results))
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 12))
    effects = evidence.effects(run)
    monkeypatch.setattr(evidence, "effects", lambda results: effects.assign(verdict="adopt"))
    assert screen.expected_sentences(run) == []


def test_init_says_what_is_known_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    handbook = str(Path(__file__).parents[2] / "data" / "phases")
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 12, change="recommended", base="baseline"))
    assert main(["init", handbook, "--yes"]) == 0
    known = "prediction from 12 other collections with synthetic queries: recommended beats baseline with probability"
    said = capsys.readouterr().out
    assert known in said
    assert " nDCG@10 on synthetic queries; user queries may differ)" in said
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 9, change="recommended", base="baseline"))
    assert main(["init", handbook, "--yes", "--replace"]) == 0
    assert "prediction" not in capsys.readouterr().out


def test_an_encoder_that_every_arm_has_is_no_change(results: Path) -> None:
    run = measurements.load(store.latest(results))
    language = ["index.encoder.name=multilingual"]
    given = {arm: [*words, *language] for arm, words in run.record["overrides"].items()}
    assert ingest.known_arms(replace(run, record={**run.record, "overrides": given})) == ingest.known_arms(run)
    given["plain"] = run.record["overrides"]["plain"]
    assert ingest.known_arms(replace(run, record={**run.record, "overrides": given})) == {"plain": "plain_hybrid"}


def test_an_export_on_expectation_says_so_in_its_evidence(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", "@1/dedup", "--without-index", "--quiet", f"paths.results={results}"]
    monkeypatch.setattr(Atlas, "load", lambda: made([0.001, -0.001] * 6))
    assert main([*words, "--accept-predicted", "--out", str(tmp_path / "unsure")]) == 2
    assert "no gain is predicted with probability 0.9" in capsys.readouterr().err
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 9))
    assert main([*words, "--accept-predicted", "--out", str(tmp_path / "unknown")]) == 2
    assert "too few other collections measured" in capsys.readouterr().err
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 12))
    assert main([*words, "--out", str(tmp_path / "unasked")]) == 2
    assert main([*words, "--accept-predicted", "--out", str(tmp_path / "bundle")]) == 0
    assert "Exported with --accept-predicted, without a verdict" in (tmp_path / "bundle" / "README.md").read_text()


def test_a_run_of_ones_own_is_added(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = len(Atlas.load().rows("p8"))
    capsys.readouterr()
    for _ in range(2):  # the same collection counts once
        assert main(["atlas", "add", "@1", f"paths.results={results}", "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["collection"], row["base"], row["change"], row["topics"]) == ("phases", "plain_hybrid", "p8", 4)
        assert len(Atlas.load().rows("p8")) == before + 1


def test_the_screen_and_a_change_by_collection(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atlas"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 120 and "Predictions are not verdicts" in said
    assert main(["atlas", "show", "p8", "--json"]) == 0
    assert {row["collection"] for row in json.loads(capsys.readouterr().out)["collections"]} > {"pooled"}
    assert main(["atlas", "show", "p88"]) == 2
    assert "the atlas has no change 'p88'" in capsys.readouterr().err
    assert main(["atlas", "shows"]) == 2
