"""`ragbench verify`: exit code 0 or 1, and what was seen."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ragbench.commands import cli


def test_verify_exits_0_for_an_untouched_bundle(small_bundle: Path, capsys) -> None:
    assert cli.main(["verify", str(small_bundle), "--no-latency", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "3 golden queries return the same results" in " ".join(out.split())
    assert "FAILS" not in out
    assert "not checked: skipped with --no-latency" in out


def test_verify_exits_1_for_a_changed_bundle(small_bundle: Path, tmp_path: Path, capsys) -> None:
    copied = Path(shutil.copytree(small_bundle, tmp_path / "copied"))
    (copied / "golden.jsonl").write_text((copied / "golden.jsonl").read_text().replace('"ids": ["', '"ids": ["other/'))
    assert cli.main(["verify", str(copied), "--no-latency", "--json"]) == 1
    output = json.loads(capsys.readouterr().out)
    assert output["passes"] is False
    assert {check["part"] for check in output["checks"] if check["outcome"] == "fails"} == {"files", "rankings"}


def test_verify_refuses_bad_input_in_one_sentence(tmp_path: Path, small_bundle: Path, capsys) -> None:
    assert cli.main(["verify", str(tmp_path)]) == 2
    assert "is not a bundle" in capsys.readouterr().err
    assert cli.main(["verify", str(small_bundle), "--latency-tolerance", "-1"]) == 2
    assert capsys.readouterr().err == "ragbench: --latency-tolerance must be at least 0, got -1\n"
