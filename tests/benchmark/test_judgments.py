from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.benchmark.judgments import parse_grade, read_judgments
from tests.naming import naming
from tests.tables import rows


@pytest.mark.parametrize("text", rows("benchmark_judgments", "read_judgments_takes_every_form"))
def test_read_judgments_takes_every_form(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(text)
    assert read_judgments(path) == {"q": {"d%201": 2}}


def test_read_judgments_keeps_commas_in_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.qrels"
    path.write_text("q 0 a,b,c 1\n")
    assert read_judgments(path) == {"q": {"a,b,c": 1}}
    path.write_text('qid,docno,grade\nq,"a, ""b"", c",1\n')
    assert read_judgments(path) == {"q": {'a,%20"b",%20c': 1}}


@pytest.mark.parametrize(("text", "grade"), [("3", 3), ("-1", -1), ("2.0", 2), ("1e1", 10), ("+2", 2)])
def test_parse_grade_takes_whole_numbers(text: str, grade: int) -> None:
    assert parse_grade(text, "x") == grade


@pytest.mark.parametrize("text", ["", "x", "0.5", "nan", "inf", "1e99", "1001", "-1001", "1_0x"])
def test_parse_grade_refuses_other_values(text: str) -> None:
    with pytest.raises(BenchmarkError, check=naming("a.tsv:7")):
        parse_grade(text, "a.tsv:7")


def test_grades_mapping_leaves_no_empty_topic(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("q\td\t-1\nr\td\t1\n")
    assert read_judgments(path, {-1: None, 1: 2}) == {"r": {"d": 2}}
