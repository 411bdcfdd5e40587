"""`ragbench export`, from a finished run to files."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from ragbench.commands import cli

LOW, HIGH = [0.4, 0.5] * 15, [0.6, 0.7] * 15
TIMES = {"base": 10.0, "better": 12.0, "same": 10.0}


@pytest.fixture
def run(write_results, priced, tmp_path: Path) -> Path:
    return write_results(tmp_path / "run", {"base": LOW, "better": HIGH, "same": [*LOW[:-1], 0.6]}, TIMES)


@pytest.mark.parametrize("form", ["ragdocs", "librarian"])
def test_export_prints_what_a_file_cannot_express(form: str, run: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "deep" / "config"
    assert cli.main(["export", str(run), "--arm", "better", "--format", form, "--out", str(out)]) == 0
    printed = capsys.readouterr()
    replayed = "nDCG@10 0.650 measured, 0.650 emulated by ragbench: change [+0.000, +0.000], 95% CI, on 30 queries"
    assert printed.out == f"{replayed}\nwrote {out}: {form} of better\n"
    unexpressed = [line.removeprefix("not expressed: ") for line in printed.err.splitlines() if "expressed" in line]
    assert unexpressed
    text = out.read_text()
    assert all(sentence in text or json.dumps(sentence) in text for sentence in unexpressed)
    assert (tomllib.loads if form == "ragdocs" else json.loads)(text)["search"]
    assert "Quality significantly better" in text and replayed in text
    assert [path.name for path in out.parent.iterdir()] == ["config"]


@pytest.mark.parametrize("form", ["ragdocs", "librarian"])
def test_export_of_an_unproven_gain_needs_force(form: str, run: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    words = ["export", str(run), "--arm", "same", "--format", form, "--out", str(out)]
    assert cli.main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.exists()
    assert cli.main([*words, "--force"]) == 0
    assert "warning: Exported with --force, although" in capsys.readouterr().err
    assert "CAUTION: Exported with --force, although the verdict is " in out.read_text()


def test_export_prints_json_and_writes_below_the_run(run: Path, capsys) -> None:
    assert cli.main(["export", str(run / "arms" / "better"), "--format", "ragdocs", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["out"] == str(run / "exports" / "better.toml")
    assert (printed["gain"], printed["caution"], printed["format"]) == ("adopt", None, "ragdocs")
    assert all(f"# - {sentence}" in Path(printed["out"]).read_text() for sentence in printed["not_expressed"])


def test_export_writes_a_bundle(small_bundle: Path, tmp_path: Path, capsys) -> None:
    words = ["export", str(small_bundle.parent / "run"), "--out", str(tmp_path / "out"), "--quiet"]
    assert cli.main(words) == 0
    expected = f"wrote {tmp_path / 'out'}: bundle of small\nnext: ragbench verify {tmp_path / 'out'}\n"
    assert capsys.readouterr().out == expected
    assert {path.name for path in (tmp_path / "out").iterdir()} == {path.name for path in small_bundle.iterdir()}
    assert cli.main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["RUN"], "has several arms"),
        (["RUN", "--arm", "best"], "has no arm 'best'"),
        (["RUN", "--arm", "better", "--format", "yaml"], "--format must be one of ragbench"),
        (["RUN", "RUN"], "name one run, got 2"),
        (["RUN", "run=x"], "run is unknown"),
        (["RUN", "--arm", "better", "--format", "ragdocs", "--out", "RUN"], "is a folder"),
        (["RUN", "--arm", "better", "--format", "ragdocs", "--out", "RUN/experiment.json/x"], "cannot be written"),
        (["RUN", "--arm", "better", "--baseline", "best"], "--baseline best is not an arm"),
    ],
)
def test_export_refuses_bad_input_in_one_sentence(words: list[str], message: str, run: Path, capsys) -> None:
    assert cli.main(["export", *(word.replace("RUN", str(run)) for word in words)]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of libraries below MLflow, about one another
def test_export_takes_the_mlflow_id_of_a_run(run: Path, tmp_path: Path, capsys) -> None:
    import mlflow

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    mlflow.set_tracking_uri(uri)
    mlflow.create_experiment("made", artifact_location=str(tmp_path / "artifacts"))
    mlflow.set_experiment("made")
    with mlflow.start_run(tags={"ragbench.folder": str(run), "ragbench.arm": "better"}) as tracked:
        pass
    out = tmp_path / "config.toml"
    words = ["export", str(tracked.info.run_id), "--format", "ragdocs", "--out", str(out), f"tracking.uri={uri}"]
    assert cli.main(words) == 0
    assert "from arm 'better'" in out.read_text()
    capsys.readouterr()
    assert cli.main(["export", "nowhere", f"tracking.uri={uri}"]) == 2
    assert "'nowhere' is neither a file nor a run" in capsys.readouterr().err
