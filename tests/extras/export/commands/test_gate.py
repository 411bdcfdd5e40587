"""`ragbench gate`: exit code 0 or 1 between two runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ragbench.benchmark.benchmark import Benchmark
from ragbench.commands import cli
from ragbench.workbench.experiment import Experiment
from ragbench.workbench.results import Results

VALUES = [0.4, 0.5, 0.6] * 110  # enough that unseen queries cannot hide a loss of the margin


@pytest.fixture
def run(write_results, tmp_path: Path) -> Path:
    arms = {"old": VALUES, "worse": [value - 0.1 for value in VALUES], "slow": VALUES}
    return write_results(tmp_path / "run", arms, {"old": 20.0, "worse": 20.0, "slow": 90.0})


@pytest.fixture(scope="module")
def contexts(benchmark_small: Benchmark, workplace: Path) -> Results:
    around = [f"paths.results={workplace}", "tracking.enabled=false", "latency.enabled=false", "split=all"]
    return Experiment.arms({"plain": ["exp=baseline", *around], "few": ["cut.top_n=1", *around]}, benchmark_small).run()


def test_gate_limits_pollution_of_the_candidate(contexts: Results, capsys) -> None:
    plain, few = (f"{contexts.folder}/arms/{arm}" for arm in contexts.arms)
    shares = contexts.contexts.set_index("arm")
    assert cli.main(["gate", few, plain, "--margin", "0", "--max-pollution", "1"]) == 0
    assert f"{shares.loc['plain', 'type']:.1%} by type; at most 100.0% is allowed" in capsys.readouterr().out
    assert cli.main(["gate", few, plain, "--margin", "0", "--max-pollution", "0.01", "--json"]) == 1
    check = json.loads(capsys.readouterr().out)["checks"][-1]
    assert (check["part"], check["outcome"]) == ("pollution", "fails")
    assert f"{shares.loc['plain', 'type']:.1%} by type; more than the limit of 1.0%; worst: type '" in check["said"]
    assert cli.main(["gate", few, plain, "--max-pollution", "1.1"]) == 2
    assert "--max-pollution must be between 0 and 1" in capsys.readouterr().err


def test_gate_fails_without_measured_pollution(run: Path, capsys) -> None:
    arms = run / "arms"
    assert cli.main(["gate", f"{arms / 'old'}", f"{arms / 'old'}", "--max-pollution", "0.5"]) == 3
    assert "the candidate has no relevant sections, or an older version measured it" in capsys.readouterr().out


def test_gate_prints_json(run: Path, capsys) -> None:
    arms = run / "arms"
    assert cli.main(["gate", f"{arms / 'old'}", f"{arms / 'worse'}", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["passes"] is False
    assert [(check["part"], check["outcome"]) for check in report["checks"]] == [
        ("benchmark", "passes"),
        ("quality", "fails"),
        ("latency", "passes"),
    ]
    slow = ["gate", f"{arms / 'old'}", f"{arms / 'slow'}"]
    assert cli.main(slow) == 1 and cli.main([*slow, "--latency-tolerance", "4"]) == 0
    assert "FAILS" in capsys.readouterr().out


def test_gate_refuses_bad_input_in_one_sentence(run: Path, capsys) -> None:
    assert cli.main(["gate", str(run), str(run)]) == 2
    err = capsys.readouterr().err
    assert f"has several arms (old, worse, slow): specify one, such as {run.name}/slow (arm='slow' in Python)" in err
    assert err.count("\n") == 1
    # Of the new run, the arm that has the name of the old one.
    assert cli.main(["gate", f"{run / 'arms' / 'worse'}", str(run)]) == 0
    assert cli.main(["gate", "a", "b", "c"]) == 2
    assert "ragbench gate OLD NEW" in capsys.readouterr().err


def test_gate_exit_code_of_too_few_topics(write_results, tmp_path: Path, capsys) -> None:
    run = write_results(tmp_path / "run", {"old": VALUES[:30], "new": [0.3, *VALUES[1:30]]})
    named = ["gate", f"{run / 'arms' / 'old'}", f"{run / 'arms' / 'new'}"]
    assert cli.main(named) == 3
    assert "inconclusive: documents" in capsys.readouterr().out
    assert cli.main([*named, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["passes"] is False
    assert cli.main([*named, "--margin", "0"]) == 0


def test_gate_compares_with_the_pinned_run(
    write_results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """Each run loses .03, surely and less than the margin: against the run before all pass, against the pin not."""
    monkeypatch.chdir(tmp_path)
    words = [f"paths.results={tmp_path}"]
    folders = []
    for number, report in enumerate(
        ("no results below", "is the only run: pin it with ragbench gate --pin @1", "gate --pin @2")
    ):
        assert cli.main(["gate", *words]) == 2
        assert report in capsys.readouterr().err
        arm = {"arm": [value - 0.03 * number for value in VALUES]}
        folders.append(write_results(tmp_path / "runs" / f"{number}", arm))
    (tmp_path / "ragbench.yaml").write_text("# ours\nseed: 13\narms:\n  one: exp=baseline\n", encoding="utf-8")
    assert cli.main(["gate", "--pin", str(folders[0]), *words]) == 0
    written = (tmp_path / "ragbench.yaml").read_text(encoding="utf-8")
    assert written == '# ours\nseed: 13\ngate: "runs/0/arms/arm"\narms:\n  one: exp=baseline\n'
    capsys.readouterr()
    assert cli.main(["gate", str(folders[1]), str(folders[2]), *words, "--margin", "0.05"]) == 0
    assert "a significant loss of 0.030, smaller than the margin" in capsys.readouterr().out
    assert cli.main(["gate", str(folders[0]), str(folders[1]), *words, "--margin", "0.05"]) == 0
    assert cli.main(["gate", *words, "--margin", "0.05"]) == 1
    assert cli.main(["gate", "--pin", str(folders[2]), *words]) == 0
    assert (tmp_path / "ragbench.yaml").read_text(encoding="utf-8").count("gate:") == 1
    assert cli.main(["gate", *words]) == 0


def test_gate_writes_markdown_with_both_levels(write_results, tmp_path: Path, capsys) -> None:
    lower = [value - 0.1 for value in VALUES]
    run = write_results(tmp_path / "run", {"old": VALUES, "new": lower}, passages={"old": lower, "new": VALUES})
    named, page = ["gate", f"{run / 'arms' / 'old'}", f"{run / 'arms' / 'new'}"], tmp_path / "gate.md"
    assert cli.main([*named, "--markdown", str(page)]) == 1
    text = page.read_text("utf-8")
    assert text.startswith("## Search gate fails\n\n### old → new\n\n| level | before | now |")
    assert (
        "| documents, nDCG@10 | 0.500 | 0.400 | -0.100 \\[" in text and "| significantly worse |\n| passages, " in text
    )
    assert "**Latency**, not checked: " in text and "no earlier comparison is recorded here" in text
    assert cli.main(["gate", "nowhere", "--markdown", str(page)]) == 2
    refusal = capsys.readouterr().err.removeprefix("ragbench: ")
    assert page.read_text("utf-8").startswith("## Search gate compared nothing\n\n")
    assert refusal[:20] in page.read_text("utf-8")


def test_gate_lists_lost_and_won_queries(write_results, reseal, tmp_path: Path) -> None:
    """By rank of the best relevant document of each run, whatever it is called there."""
    run = write_results(tmp_path / "run", {"old": VALUES[:30], "new": VALUES[:30]})
    (run / "documents.qrels").write_text("q0 0 a.md 2\nq0 0 b.md 0\nq1 0 c.md 1\n", "utf-8")
    (run / "arms" / "old" / "run.trec").write_text(
        "q0 Q0 a.md 1 2.0 x\nq0 Q0 b.md 2 1.0 x\nq1 Q0 z.md 1 1 x\n", "utf-8"
    )
    (run / "arms" / "new" / "run.trec").write_text("q0 Q0 b.md 1 1.0 x\nq1 Q0 z.md 1 2 x\nq1 Q0 c.md 2 1 x\n", "utf-8")
    reseal(run)
    page = tmp_path / "gate.md"
    cli.main(["gate", f"{run / 'arms' / 'old'}", f"{run / 'arms' / 'new'}", "--markdown", str(page)])
    text = page.read_text("utf-8")
    assert ": 1 query lost, 1 query won\n" in text
    assert "**Lost**\n\n- `q0`: `a.md` was at 1, is not in 10; at 1 is now `b.md`\n" in text
    assert "**Won**\n\n- `q1`: `c.md` was not in 10, is at 2\n" in text


def test_gate_of_a_commit_refuses_runs_and_unknown_commits(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["gate", "--base", "HEAD", "--pin", "@1"]) == 2
    assert "--base measures both sides: omit runs and --pin" in capsys.readouterr().err
    assert cli.main(["gate", "--base", "HEAD"]) == 2
    assert "git rev-parse fails in" in capsys.readouterr().err
    subprocess.run(["git", "init", "-q"], check=True)
    assert cli.main(["gate", "--base", "nope"]) == 2
    assert "--base nope is not a commit of this repository: fetch it" in capsys.readouterr().err
