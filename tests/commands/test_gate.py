"""`ragbench gate`: exit code 0 or 1 between two runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench import cli

VALUES = [0.4, 0.5, 0.6] * 10


@pytest.fixture
def run(write_results, tmp_path: Path) -> Path:
    arms = {"old": VALUES, "worse": [value - 0.1 for value in VALUES], "slow": VALUES}
    return write_results(tmp_path / "run", arms, {"old": 20.0, "worse": 20.0, "slow": 90.0})


@pytest.mark.parametrize(
    ("candidate", "more", "code"),
    [
        ("old", [], 0),
        ("worse", [], 1),
        ("worse", ["--drop", "0.2"], 0),
        ("slow", [], 1),
        ("slow", ["--latency-tolerance", "4"], 0),
    ],
)
def test_exit_code(run: Path, candidate: str, more: list[str], code: int, capsys) -> None:
    arms = run / "arms"
    assert cli.main(["gate", f"{arms / 'old'}", f"{arms / candidate}", *more]) == code
    assert ("FAILS" in capsys.readouterr().out) is bool(code)


def test_as_json(run: Path, capsys) -> None:
    arms = run / "arms"
    assert cli.main(["gate", "--baseline", f"{arms / 'old'}", "--candidate", f"{arms / 'worse'}", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["passes"] is False
    assert [(check["part"], check["outcome"]) for check in said["checks"]] == [
        ("benchmark", "passes"),
        ("quality", "fails"),
        ("latency", "passes"),
    ]


def test_bad_input_is_one_sentence(run: Path, capsys) -> None:
    assert cli.main(["gate", str(run), str(run)]) == 2
    err = capsys.readouterr().err
    assert "has several arms" in err
    assert err.count("\n") == 1
    assert cli.main(["gate", "a", "b", "c"]) == 2
    assert "ragbench gate OLD NEW" in capsys.readouterr().err
