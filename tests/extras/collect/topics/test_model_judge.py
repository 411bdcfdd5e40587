"""A model grades a pool, a person some topics of it, and effects are corrected by the difference."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.errors import BenchmarkError
from ragbench.commands import cli
from ragbench.extras.collect.agreement import agreement, quadratic_kappa, wilson
from ragbench.extras.collect.model_judge import grade_pool

HEAD = "qid,query,need,section,heading,text,grade,note\n"


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def pool_of(path: Path, topics: int) -> Path:
    lines = [f"t{n},query {n},,d{m}#s,Heading,text {m},,\n" for n in range(topics) for m in range(2)]
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
    return path


def test_grades_and_sample_are_two_files_and_the_sample_is_blind(tmp_path: Path) -> None:
    pool = pool_of(tmp_path / "pool.csv", 5)
    answers = iter(["3", "Grade: 2.", "no idea", "4", "10", "0", "1", "1", "1", "1"])
    found = grade_pool(pool, lambda prompt: next(answers), "small", 2, 13)
    assert [row["grade"] for row in rows(found.grades)] == ["3", "2", "", "", "", "0", "1", "1", "1", "1"]
    assert {row["judge"] for row in rows(found.grades)} == {"small"}
    assert (found.graded, found.pairs, len(found.sampled)) == (7, 10, 2)
    sample = rows(found.sample)
    assert len(sample) == 4 and {row["qid"] for row in sample} == set(found.sampled)
    assert {row["grade"] for row in sample} == {""} and "judge" not in sample[0]
    with pytest.raises(BenchmarkError, match=r"pool.model.csv exists already: move it away, or add --replace"):
        grade_pool(pool, str, "small", 2, 13)


def test_grades_of_a_model_are_not_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ragbench.extras.collect.judge import merge_into_folder

    found = grade_pool(pool_of(tmp_path / "pool.csv", 2), lambda prompt: "1", "small", 1, 13)
    with pytest.raises(BenchmarkError, match="holds grades of a model, which are not judgments"):
        merge_into_folder(found.grades, tmp_path / "qrels")


def test_kappa_is_that_of_the_agreement_of_judges_and_wilsons_interval_by_hand() -> None:
    first = {"a": {"x": 0, "y": 3, "z": 2}, "b": {"x": 1, "y": 1, "z": 0}}
    second = {"a": {"x": 1, "y": 3, "z": 2}, "b": {"x": 1, "y": 0, "z": 2}}
    counts = np.zeros((4, 4))
    for qid, grades in first.items():
        for name, grade in grades.items():
            counts[grade, second[qid][name]] += 1
    assert quadratic_kappa(counts) == pytest.approx(agreement(first, second).kappa_quadratic)
    assert np.isnan(quadratic_kappa(np.diag([5.0, 0, 0, 0])))
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_from_a_run_to_corrected_effects(
    tmp_path: Path, write_vault, chat_server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = write_vault(tmp_path / "notes", 24)
    lines = ["text,qid"]
    for number, path in enumerate(sorted(notes.rglob("*.md"))):
        builder = path.read_text(encoding="utf-8").split("\n\n")[1].split(". ")[0]
        lines.append(f'"{builder}",t{number:02}')
    (tmp_path / "queries.csv").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    data = ["data=vault", "data.corpus=notes", "data.queries=queries.csv", "paths.results=results"]
    arms = ["-m", "+exp=lexical_only", "lexical.depth=1,5", "latency.enabled=false", "tracking.enabled=false"]
    arms += ["allow_unjudged=true"]  # judgments come from the pool
    assert cli.main(["run", *arms, *data]) == 0
    assert cli.main(["pool", "@1", "--depth", "4", "paths.results=results"]) == 0
    # The model finds only the word `built` useful; so does the person, but for one section of three.
    chat_server.answer = lambda prompt: "3" if " built " in prompt.split("Text:")[1] else "0"
    model = ["--endpoint", chat_server.endpoint, "--model", "small", "--sample", "12"]
    assert cli.main(["judge", "pool.csv", *model, "paths.results=results"]) == 0
    assert "grade the 12 topics in pool.sample.csv without looking at these" in capsys.readouterr().out
    compare = ["compare", "@1", "--model-grades", "pool.model.csv", "--sample", "pool.sample.csv"]
    assert cli.main([*compare, "paths.results=results"]) == 2
    assert "pairs without a grade: grade them with ragbench judge pool.sample.csv" in capsys.readouterr().err
    sample = rows(Path("pool.sample.csv"))
    for number, row in enumerate(sample):
        row["grade"] = "3" if " built " in row["text"] and number % 3 else "0"
    with Path("pool.sample.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(sample[0]))
        writer.writeheader()
        writer.writerows(sample)
    assert cli.main([*compare, "paths.results=results", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (effect,) = found["effects"]
    assert (effect["n"], effect["n_model"]) == (12, 12)
    assert effect["low"] <= effect["effect"] <= effect["high"] and 0 <= effect["weight"] <= 1
    assert 0 < found["agreement"]["kappa_quadratic"] < 1 and found["kappa"][0] <= found["kappa"][1]
    assert cli.main([*compare, "paths.results=results"]) == 0
    assert "Model and annotators graded" in capsys.readouterr().out
    assert cli.main([*compare[:-2], "paths.results=results"]) == 2
    assert "--model-grades and --sample go together" in capsys.readouterr().err
