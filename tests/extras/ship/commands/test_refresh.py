"""`ragbench refresh`: what it says, as text and as JSON, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ragbench.commands import cli
from ragbench.extras.ship import refresh
from ragbench.extras.ship.refresh import Refresher

PHASES = Path(__file__).parents[3] / "data" / "phases"


@pytest.fixture
def bundle(small_bundle: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_bundle, tmp_path / "bundle"))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PHASES, tmp_path / "notes"))


def test_refresh_prints_changes_and_drift(bundle: Path, notes: Path, capsys) -> None:
    assert cli.main(["refresh", str(bundle), "--corpus", str(notes), "--quiet"]) == 0
    assert capsys.readouterr().out == "nothing has changed; generation 0 stays in service\n"
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    (notes / "caching.md").write_bytes(b"")
    assert cli.main(["refresh", str(bundle), "--corpus", str(notes), "--quiet"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("generation 1 is in service: 1 added, 0 changed, 0 deleted; ")
    assert output.out.endswith(f"a server that runs loads it by itself\nnext: ragbench verify {bundle}\n")
    assert output.err.startswith("kept as it was: caching.md: empty-file: ")


def test_refresh_prints_json(bundle: Path, notes: Path, capsys) -> None:
    (notes / "authentication.md").unlink()
    assert cli.main(["refresh", str(bundle), "--corpus", str(notes), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["generation"], output["documents"], output["deleted"]) == (1, 18, ["authentication"])
    lost: dict[str, str] = {}
    for change in output["drift"]["changes"]:
        lost |= change["lost"]
    assert {fate for name, fate in lost.items() if name.startswith("authentication#")} == {"deleted"}
    assert 0 < output["drift"]["chunks_changed"] < 1


@pytest.mark.slow
def test_watch_goes_on_after_a_failure(bundle: Path, notes: Path, monkeypatch, capsys) -> None:
    def changed(*paths: Path):
        yield
        (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
        (bundle / "bundle.json").rename(bundle / "away")
        yield
        (bundle / "away").rename(bundle / "bundle.json")
        monkeypatch.setattr(Refresher, "_build", failing)
        yield
        monkeypatch.setattr(Refresher, "_build", build)
        yield

    def failing(*given: object) -> None:
        raise FileNotFoundError("a part of the index")

    build = Refresher._build
    monkeypatch.setattr(refresh, "changes", changed)
    assert cli.main(["refresh", str(bundle), "--corpus", str(notes), "--watch", "--quiet"]) == 0
    output = capsys.readouterr()
    assert "generation 1 is in service: 1 added" in output.out
    absent, broken = output.err.splitlines()
    assert absent.startswith("warning: the bundle stays as it is (") and "is not a bundle" in absent
    assert broken == "warning: the bundle stays as it is (a part of the index)"


def test_refresh_refuses_missing_folders(bundle: Path, tmp_path: Path, capsys) -> None:
    assert cli.main(["refresh", str(tmp_path)]) == 2
    assert "is not a bundle" in capsys.readouterr().err
    assert cli.main(["refresh", str(bundle), "--corpus", str(tmp_path / "nowhere")]) == 2
    assert "does not exist" in capsys.readouterr().err
