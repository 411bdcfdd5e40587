"""One way to name a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragbench.base.types import ResultsError
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.workbench.runs import find, named_runs
from tests.naming import naming

VALUES = [0.4, 0.5] * 5


@pytest.fixture
def root(write_results, tmp_path: Path) -> Path:
    for actual, name in enumerate(
        ("20260101-120000-run-old", "20260102-120000-run-2-arms", "20260102-130000-ablate-new")
    ):
        folder = write_results(tmp_path / "runs" / name, {"base": VALUES, "p6 deep": VALUES})
        os.utime(folder / "experiment.json", (1000 + actual, 1000 + actual))
    return tmp_path


def test_runs_folder_a_part_of_its_name_and_its_place(root: Path) -> None:
    settings = composition.compose([f"paths.results={root}"])
    runs = root / "runs"

    def named(name: str) -> str:
        return find(name, settings).relative_to(runs).as_posix()

    assert named(str(runs / "20260101-120000-run-old")) == "20260101-120000-run-old"
    assert named("@1") == named("ablate") == "20260102-130000-ablate-new"
    assert named("@2") == named("2-arms") == "20260102-120000-run-2-arms"
    assert named("@3/base") == "20260101-120000-run-old/arms/base"
    assert named("@1/p6 deep").startswith("20260102-130000-ablate-new/arms/p6_deep~")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("run", "'run' may be any of 2 runs"),
        ("@9", "@9 is not a run"),
        ("@0", "@0 is not a run"),
        ("phase7", "'phase7' is neither a file nor a run"),
        ("@1/bese", "has no arm 'bese'; did you mean base?"),
    ],
)
def test_runs_unknown_name_is_one_sentence(name: str, message: str, root: Path) -> None:
    with pytest.raises(ResultsError) as caught:
        find(name, composition.compose([f"paths.results={root}"]))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_runs_commands_take_the_newest_where_none_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder,), _ = named_runs([f"paths.results={root}"])
    assert folder.name.endswith("ablate-new")
    with pytest.raises(ResultsError, check=naming("got 2")):
        named_runs(["@1", "@2", f"paths.results={root}"], limit=1)
    assert cli.main(["gate", "@2/base", "@1/base", f"paths.results={root}"]) == 3  # too few queries for the margin
    assert cli.main(["compare", "@1", f"paths.results={root}", "--json"]) == 0
