"""`ragbench compare --effects`: one ablation on two collections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.commands.cli import main
from tests.made_atlas import QUESTIONS


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with the same ablation of `one` and, with a question less, of `two`."""
    folder = tmp_path_factory.mktemp("effects")
    handbook = Path(__file__).parents[2] / "data" / "phases"
    for name, questions in (("one", QUESTIONS), ("two", QUESTIONS.rpartition("the guide")[0])):
        (folder / f"{name}.csv").write_text(questions, encoding="utf-8")
        data = ["data=vault", f"data.name={name}", f"data.corpus={handbook}", f"data.queries={folder / name}.csv"]
        words = [*data, f"paths.results={folder}", "tracking.enabled=false", "latency.enabled=false", "--quiet"]
        assert main(["ablate", "+exp=lexical_only", "design=add_one", "factors=[p3,p10,p12]", *words]) == 0
    return f"paths.results={folder}"


def test_effects_stand_side_by_side(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["compare", "@2", "@1", "--effects", "--json", results]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["change"] for row in found["effects"]] == ["p3", "p10", "p12"]
    assert {"one effect", "one low", "two high"} <= found["effects"][0].keys()
    (row,) = found["agreement"]
    assert (row["first"], row["second"], row["changes"]) == ("one", "two", 3)
    for form in ("table", "markdown", "csv"):
        assert main(["compare", "@2", "@1", "--effects", "--format", form, results]) == 0
        assert "p12" in capsys.readouterr().out


def test_one_collection_twice_is_refused(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "@1", "@1", "--effects", results]) == 2
    assert "one run over each collection, got two over 'two'" in capsys.readouterr().err
