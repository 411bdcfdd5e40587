"""`ragbench report` from the command line."""

import json
from pathlib import Path

import pytest

from ragbench.base import files
from ragbench.commands import cli
from ragbench.results.measurements import Measurements


def test_report_goes_into_the_folder(alone: Measurements, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(alone.folder)]) == 0
    path = alone.folder / "report.html"
    assert capsys.readouterr().out == f"report in {path}\n"
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_report_command_newest_run_and_another_place(
    alone: Measurements, around: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = [word for word in around if word.startswith("paths.results=")]
    out = tmp_path / "deep" / "page.html"
    assert cli.main(["report", path, "--out", str(out), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["report"] == str(out)
    assert answer["bytes"] == out.stat().st_size
    assert Path(answer["run"]).parent == alone.folder.parent


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{tmp}"], "holds no results"),
        (["a", "b"], "name one run, got 2: a, b"),
        (["{run}", "--out", "{tmp}"], "is a folder: name a file such as"),
        (["paths.results={tmp}"], "run an experiment first"),
    ],
)
def test_report_command_errors_are_one_sentence(
    words: list[str], message: str, alone: Measurements, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [word.format(tmp=tmp_path, run=alone.folder) for word in words]
    extra = [] if any("paths" in word for word in filled) else [f"paths.results={tmp_path}"]
    assert cli.main(["report", *filled, *extra]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_report_reads_a_run_once(alone: Measurements, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Path] = []
    check_digests = files.check_digests
    monkeypatch.setattr(
        files, "check_digests", lambda folder, digests: (checked.append(folder), check_digests(folder, digests))
    )
    assert cli.main(["report", str(alone.arm_path("lexical_only")), "--out", str(tmp_path / "page.html")]) == 0
    assert checked == [alone.folder, alone.arm_path("lexical_only")]
