"""Run files name documents as their user does: other tools score them against the user's own judgments."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytrec_eval

from ragbench import Experiment, Results
from ragbench.benchmark.native import FILE_NAMES
from ragbench.benchmark.runs import read_run
from ragbench.commands import cli
from ragbench.results.compare import gather
from ragbench.results.measurements import DOCUMENTS, SECTIONS

PAGES = {
    "guides/Config_checks.md": "# Checks\n\nHow to check the configuration of a lamp before it starts.\n",
    "guides/night mode.markdown": "# Night\n\n## Dusk\n\nThe lamp turns itself on when the sun sets.\n",
    "index.md": "# Lamps\n\nAll about lamps, their configuration and their oil.\n",
}
QRELS = "q1 0 guides/Config_checks.md 2\nq1 0 index.md 1\nq2 0 guides/night%20mode.markdown 3\n"


@pytest.fixture
def vault(tmp_path: Path) -> list[str]:
    for path, text in PAGES.items():
        (tmp_path / "notes" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / path).write_text(text)
    (tmp_path / "queries.csv").write_text("qid,text\nq1,check the configuration\nq2,when the sun sets\n")
    (tmp_path / "own.qrels").write_text(QRELS)
    data = {"corpus": "notes", "queries": "queries.csv", "qrels": "own.qrels"}
    words = [f"data.{key}={tmp_path / name}" for key, name in data.items()]
    return ["data=vault", *words, f"paths.results={tmp_path / 'results'}", "tracking.enabled=false"]


@pytest.fixture
def measured(vault: list[str]) -> Results:
    arms = {"plain": ["exp=lexical_only"], "flat": ["exp=lexical_only", "lexical.b=0"]}
    return Experiment.arms(arms, None, *vault, "latency.enabled=false", "split=all").run()


def test_run_files_pytrec_eval_scores_a_run_with_the_judgments_of_its_user(measured: Results, tmp_path: Path) -> None:
    qrels: dict[str, dict[str, int]] = {}
    for line in (tmp_path / "own.qrels").read_text().splitlines():
        qid, _, name, grade = line.split()
        qrels.setdefault(qid, {})[name] = int(grade)
    for arm in measured.arms:
        run = {qid: dict(hits) for qid, hits in read_run(measured.arm_path(arm) / DOCUMENTS).items()}
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(run)
        ours = measured.values(arm).to_dict()
        assert ours == pytest.approx({qid: item["ndcg_cut_10"] for qid, item in theirs.items()})
        assert min(ours.values()) > 0.5
    assert sorted((measured.folder / "documents.qrels").read_text().splitlines()) == sorted(QRELS.splitlines())


def test_run_files_by_path_are_read_by_docno(
    measured: Results, vault: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "guides/night%20mode,guides/night%20mode.markdown" in (measured.folder / FILE_NAMES).read_text()
    run = measured.arm_path("plain") / DOCUMENTS
    assert measured.run("plain")["q2"][0][0] == "guides/night%20mode"
    assert measured.run("plain", SECTIONS)["q2"][0][0].startswith("guides/night%20mode#")
    assert (
        (measured.arm_path("plain") / SECTIONS)
        .read_text()
        .splitlines()[0]
        .split()[2]
        .startswith("guides/Config_checks.md#")
    )
    both = gather(
        [measured.folder, run], benchmark=measured.config("plain") and Experiment.of_run(measured.folder).benchmark
    )
    values = [both.arms.arms[name].levels["document"] for name in ("plain", "run")]
    assert values[0] == pytest.approx(values[1])
    again = Experiment.arms({"plain": ["exp=lexical_only"], "file": run}, None, *vault, "split=all", quick=True)
    results = again.run()
    assert results.values("file").to_dict() == results.values("plain").to_dict()
    assert (
        cli.main(
            ["data", "pool", str(measured.folder), str(run.with_name(SECTIONS)), "--out", str(tmp_path / "pool.csv")]
        )
        == 0
    )
    assert "guides/night%20mode#" in (tmp_path / "pool.csv").read_text()
    bundle = ["export", f"{measured.folder}/arms/plain", "--out", str(tmp_path / "bundle"), "--force"]
    assert cli.main([*bundle, f"paths.results={tmp_path / 'results'}"]) == 0
    capsys.readouterr()
