"""What a run, `init` and an export print of the effects on other collections."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.commands.cli import main
from ragbench.extras.atlas.tables import Atlas
from ragbench.report import screen
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
def test_run_with_few_queries_prints_a_prediction(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = measurements.load(store.latest(results))
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 12))
    lines = screen.expected_lines(run)
    sentence = " ".join(line.strip() for line in lines[:-1])
    known = "prediction from 12 other collections (none of them with user queries) and your 4 queries: "
    assert sentence.startswith(known + "dedup beats plain with probability")
    assert sentence.endswith(" nDCG@10 on all kinds of queries)")
    assert lines[-1] == "to export it anyway: ragbench export @1/dedup --accept-predicted"
    monkeypatch.setattr(Atlas, "load", lambda: made([-0.05] * 12))
    assert "export it anyway" not in "".join(screen.expected_lines(run))
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 9))
    assert screen.expected_lines(run) == []


def test_decided_arm_has_no_prediction(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = measurements.load(store.latest(results))
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 12))
    effects = run.verdicts
    monkeypatch.setitem(vars(run), "verdicts", effects.assign(verdict="adopt"))
    assert screen.expected_lines(run) == []


def test_init_prints_a_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    handbook = str(Path(__file__).parents[2] / "data" / "phases")
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 12, change="recommended", base="baseline"))
    assert main(["init", handbook, "--yes"]) == 0
    known = "prediction from 12 other collections with synthetic queries: recommended beats baseline with probability"
    output = capsys.readouterr().out
    assert known in output
    assert " nDCG@10 on synthetic queries; user queries may differ)" in output
    monkeypatch.setattr(Atlas, "load", lambda: made([0.05] * 9, change="recommended", base="baseline"))
    assert main(["init", handbook, "--yes", "--replace"]) == 0
    assert "prediction" not in capsys.readouterr().out


def test_export_accept_predicted_is_named_in_the_bundle(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", "@1/dedup", "--quiet", f"paths.results={results}"]
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
