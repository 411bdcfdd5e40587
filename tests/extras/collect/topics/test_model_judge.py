"""A model grades a pool, and a person some topics of it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.commands import cli
from ragbench.extras.collect.model_judge import grade_pool
from tests.naming import naming

HEAD = "qid,query,need,section,heading,text,grade,note\n"


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def pool_of(path: Path, topics: int) -> Path:
    lines = [f"t{n},query {n},,d{m}#s,Heading,text {m},,\n" for n in range(topics) for m in range(2)]
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
    return path


def test_grade_pool_writes_grades_and_blind_sample(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool.csv", 5)
    answers = iter(["3", "Grade: 2.", "no idea", "4", "10", "0", "1", "1", "1", "1"])
    result = grade_pool(pool, lambda prompt: next(answers), "small", 2)
    assert [row["grade"] for row in rows(result.grades)] == ["3", "2", "", "", "", "0", "1", "1", "1", "1"]
    assert {row["judge"] for row in rows(result.grades)} == {"small"}
    assert (result.graded, result.pairs, len(result.sampled)) == (7, 10, 2)
    sample = rows(result.sample)
    assert len(sample) == 4 and {row["qid"] for row in sample} == set(result.sampled)
    assert {row["grade"] for row in sample} == {""} and "judge" not in sample[0]
    with pytest.raises(BenchmarkError, check=naming("exists already")):
        grade_pool(pool, str, "small", 2)


def test_merge_refuses_grades_of_model(tmp_path: Path) -> None:
    from ragbench.extras.collect.judge import merge_into_folder

    result = grade_pool(pool_of(tmp_path / "pool.csv", 2), lambda prompt: "1", "small", 1)
    with pytest.raises(BenchmarkError, check=naming("grades of a model")):
        merge_into_folder(result.grades, tmp_path / "qrels")


def test_judge_command_grades_by_model(tmp_path: Path, chat_server, capsys: pytest.CaptureFixture[str]) -> None:
    pool = pool_of(tmp_path / "pool.csv", 12)
    chat_server.answer = lambda prompt: "3" if "text 1" in prompt.split("Text:")[1] else "0"
    model = ["--endpoint", chat_server.endpoint, "--model", "small"]
    assert cli.main(["judge", str(pool), *model, "--sample", "9"]) == 2
    assert "--sample must be at least 10" in capsys.readouterr().err
    assert cli.main(["judge", str(pool), *model, "--sample", "11", f"paths.results={tmp_path}"]) == 0
    assert "grade the 11 topics in" in capsys.readouterr().out
    assert {row["grade"] for row in rows(tmp_path / "pool.model.csv")} == {"0", "3"}
