"""`ragbench list`, and completion, asked by a real shell."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ragbench.commands import cli
from ragbench.results import store

ASK = """
eval "$(register-python-argcomplete ragbench)"
COMP_LINE="$1"; COMP_POINT=${#1}; COMP_TYPE=9; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete ragbench
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("experiments", "phase1"),
        ("switches", "p6"),
        ("parameters", "p6.depth"),
        ("data", "vault"),
        ("models", "bge-small-en-v1.5"),
    ],
)
def test_list_prints_tables_and_json(kind: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", kind]) == 0
    assert name in capsys.readouterr().out
    assert cli.main(["list", kind, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert name in {row.get("key", row.get("name")) for row in rows}


def test_list_of_a_name_has_no_longer_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "parameters", "p1", "--json"]) == 0
    assert {row["key"].partition(".")[0] for row in json.loads(capsys.readouterr().out)} == {"p1"}


def test_list_explains_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "experiments"]) == 0
    shown = capsys.readouterr().out
    assert "Source 000, phase 1: P2" in shown and "Seed" not in shown


def test_list_of_all_names_fits_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24 and "phase1" in " ".join(lines) and "bge-small-en-v1.5" in " ".join(lines)


def test_list_runs_finished_and_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ragbench.yaml").write_text("paths.results: mine\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for plan, ends in (("0" * 16, True), ("1" * 16, False)):
        with store.writing(tmp_path / "mine", "run", "two", plan, ["a", "b"], None) as run_folder:
            run_folder.arm("a").finish_arm("key")
            if ends:
                run_folder.arm("b").finish_arm("key")
                run_folder.finish({"arms": ["a", "b"]})
    capsys.readouterr()
    assert cli.main(["list", "runs", "--json"]) == 0
    rows = {row["state"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["finished"]["arms"] == ["a", "b"] and rows["finished"]["continue"] == ""
    stopped = rows["interrupted, 1 of 2 arms finished"]
    assert stopped["arms"] == ["a"] and stopped["continue"] == "run the same experiment again"
    assert cli.main(["list", "runs"]) == 0
    assert "interrupted" in capsys.readouterr().out


def test_list_without_a_kind_prints_all_but_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["experiments", "switches", "data", "models"]


def test_list_takes_a_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "parameters", "p6.", "--json"]) == 0
    assert {row["key"].split(".")[0] for row in json.loads(capsys.readouterr().out)} == {"p6"}
    assert cli.main(["list", "parameters", "p66"]) == 2
    assert "begins with 'p66'" in capsys.readouterr().err


def test_list_models_with_digests(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "models", "--json"]) == 0
    for row in json.loads(capsys.readouterr().out):
        assert row["installed"]
        assert all(len(digest) == 64 for digest in row["files"].values())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ragbench fit ", {"calibration", "ranker"}),
        ("ragbench list co", {"config"}),
        ("ragbench list p", {"parameters"}),
        ("ragbench fit ranker --rou", {"--rounds"}),
        ("ragbench search question --exp", {"--explain"}),
        ("ragbench data ", {"check", "comparisons", "pool", "power", "repair"}),
        ("ragbench report --ou", {"--out"}),
    ],
)
def test_bash_completes_commands(line: str, offered: set[str]) -> None:
    here = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", line],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{here}:/usr/bin:/bin", "HOME": "/", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )
    assert {word.strip() for word in done.stdout.split("\n") if word} == offered, done.stderr
